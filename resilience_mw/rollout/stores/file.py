"""A store that is a file: nothing to install, and a text editor is enough to change it."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...config.wording import show
from ...core.rollout import Share
from ...exceptions import ConfigError
from .base import KEPT, Change, Decide, Store, StoreError
from .text import changed, parsed
from .writing import locked, replace

LARGEST = 1 << 20
"""Bytes of a file of shares; what is larger is another file."""

LONGEST_HISTORY = 4 << 20
"""Bytes read of a history, from its end; a thousand of the longest records are fewer."""

LOCK_TIMEOUT = 5.0
"""Seconds to wait for others who change it, each of whom needs milliseconds."""


class FileStore(Store):
    """Shares in a TOML or JSON file, for all processes that see the same file.

    Beside the file stand its history (``rollout.toml.history.jsonl``) and its lock
    (``rollout.toml.lock``). A file that is not there yet has no rules; one that was there and is
    gone cannot be read, so that an editor's way of saving does not look like an empty file.

    Args:
        path: ends with ``.toml`` or ``.json``; its directory must exist.

    Raises:
        ConfigError: the path is no such path.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        given = Path(os.path.abspath(path))
        if given.suffix not in (".toml", ".json"):
            raise ConfigError(f"store must be a file .toml or .json, got {show(os.fspath(path))}")
        if given.is_dir() or not given.parent.is_dir():
            raise ConfigError(
                f"store must be a file in a directory that exists, got {show(str(given))}"
            )
        self.path = given
        self.name = f"file:{given}"
        self._kind = given.suffix[1:]
        self._seen = False
        self._last: tuple[bytes, dict[str, Share]] | None = None

    def load(self) -> Mapping[str, Share]:
        content = self._read()
        last = self._last
        # Opened and read each time: to compare times would miss two edits within one tick of the
        # file system's clock, and on a network file system see old ones for seconds.
        if last is None or last[0] != content:
            last = self._last = (content, self._parsed(content))
        return last[1]

    def history(self, limit: int = 20) -> Sequence[Change]:
        return tuple(reversed(self._records(self._real())))[: max(limit, 0)]

    def transact(self, rule: str, decide: Decide, who: str, why: str) -> Change | None:
        path = self._real()
        try:
            with locked(path.with_name(f"{path.name}.lock"), LOCK_TIMEOUT):
                content = self._read()
                shares = self._parsed(content)
                before = shares.get(rule)
                after = decide(before)
                if after is None:
                    return None
                records = self._records(path)
                edited_at = path.stat().st_mtime if content else 0.0
                records += _by_hand(records, shares, edited_at)
                change = Change(time.time(), who, rule, before, after, why)
                records = [*records, change][-KEPT:]
                text = changed(content.decode("utf-8-sig"), self._kind, rule, after)
                lines = [json.dumps(record.to_dict(), ensure_ascii=False) for record in records]
                # The record first: whatever is in force has been written down.
                replace(
                    {
                        self._history(path): ("\n".join(lines) + "\n").encode(),
                        path: text.encode(),
                    }
                )
                self._seen = True
                return change
        except OSError as error:
            raise StoreError(f"{self.name} cannot be changed: {_reason(error)}") from error

    def why_empty(self) -> str:
        return "an empty file" if self.path.exists() else "no such file"

    def _real(self) -> Path:
        # Replacing a link would leave the file that it points to, and all who follow it, behind.
        return Path(os.path.realpath(self.path))

    @staticmethod
    def _history(path: Path) -> Path:
        return path.with_name(f"{path.name}.history.jsonl")

    def _read(self) -> bytes:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(self.path, flags)
            try:
                # Before it is made a file: `open` leaves a directory's descriptor open.
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise StoreError(f"{self.name} is no regular file")
                with open(descriptor, "rb", closefd=False) as file:
                    content = file.read(LARGEST + 1)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            if self._seen:
                raise StoreError(f"{self.name} is not there any more") from None
            return b""
        except OSError as error:
            raise StoreError(f"{self.name} cannot be read: {_reason(error)}") from error
        if len(content) > LARGEST:
            raise StoreError(f"{self.name} is larger than {LARGEST} bytes")
        self._seen = True
        return content

    def _parsed(self, content: bytes) -> dict[str, Share]:
        try:
            return parsed(content.decode("utf-8-sig"), self._kind)
        except UnicodeDecodeError:
            raise StoreError(f"{self.name} is no UTF-8") from None
        except StoreError as error:
            raise StoreError(f"{self.name} {error}") from None

    def _records(self, path: Path) -> list[Change]:
        """The history, oldest first, without lines that are none."""
        try:
            with self._history(path).open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LONGEST_HISTORY))
                text = file.read(LONGEST_HISTORY).decode(errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(f"{self.name} has no history: {_reason(error)}") from error
        records = []
        for line in text.splitlines():
            try:
                records.append(Change.from_dict(json.loads(line)))
            except (ValueError, TypeError, KeyError):
                continue
        return records


def _by_hand(records: Sequence[Change], shares: Mapping[str, Share], at: float) -> list[Change]:
    """Return a record for each share that is not as the last record of its rule left it."""
    last = {record.rule: record.after for record in records}
    return [
        Change(at, "unknown", rule, last[rule], share, "found in the file")
        for rule, share in shares.items()
        if rule in last and last[rule] != share
    ]


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
