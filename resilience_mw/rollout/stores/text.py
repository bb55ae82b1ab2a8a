"""The file's text: from TOML or JSON to shares, and one share changed in it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from ...config.wording import one_line, plain, show
from ...core.rollout import Share
from ...exceptions import ConfigError
from .base import StoreError, checked_percent, checked_rule, shown_percent

KEYS = ("percent", "held")

BARE = re.compile(r"[A-Za-z0-9_-]+")

HEADER = """\
# The share of each rule that the new stack gets, in percent. `resilience-mw rollout` edits this
# file; so may you: every process follows within a second.
"""


def parsed(text: str, kind: str) -> dict[str, Share]:
    """Return the shares in a text; `kind` is ``toml`` or ``json``.

    A rule is a number of percent, or a table of ``percent`` and ``held``.

    Raises:
        StoreError: it is no such text, or a value breaks its rule.
    """
    try:
        if kind == "toml":
            document: Any = tomllib.loads(text)
        else:
            document = json.loads(text or "{}", object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"is no {kind.upper()}: {one_line(str(error), 200)}") from None
    if not isinstance(document, dict):
        raise StoreError(f"must hold one table of rules, got {show(document)}")
    return {name: _share(name, value) for name, value in document.items()}


def changed(text: str, kind: str, rule: str, share: Share) -> str:
    """Return the text with one rule's share changed and, in TOML, all else as it was."""
    shares = {**parsed(text, kind), rule: share}
    if kind == "json":
        document = {
            name: {"percent": _number(s.percent), "held": s.held} for name, s in shares.items()
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if not text:
        return HEADER + _table(rule, share)
    edited = _edited(text, rule, share)
    try:
        if parsed(edited, kind) == shares:
            return edited
    except StoreError:
        pass
    # Written in a form that is not worth knowing: correct without comments beats not at all.
    return HEADER + "".join(_table(name, s) for name, s in shares.items())


def _share(name: str, value: object) -> Share:
    held: object = False
    percent = value
    try:
        checked_rule(name)
        if isinstance(value, Mapping):
            unknown = [key for key in value if key not in KEYS]
            if unknown or "percent" not in value:
                wrong = plain(unknown[0]) if unknown else "no percent"
                raise ConfigError(f"must be a table of percent and held, got {wrong}")
            percent, held = value["percent"], value.get("held", False)
        if not isinstance(held, bool):
            raise ConfigError(f"held must be true or false, got {show(held)}")
        # Held wins over a percent that somebody left beside it.
        number = checked_percent(percent)
        return Share(0.0 if held else number, held)
    except ConfigError as error:
        raise StoreError(f"rule {plain(name)}: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that is there twice, as TOML does: one of the two would be ignored."""
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ValueError("a name is there twice")
    return document


def _edited(text: str, rule: str, share: Share) -> str:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    first = next((n for n, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    names = "|".join(re.escape(name) for name in {_key(rule), json.dumps(rule), f"'{rule}'"})
    short = re.compile(rf"(\s*(?:{names})\s*=\s*)(?:\{{[^#]*\}}|[^#\s]+)(.*)", re.DOTALL)
    for number, line in enumerate(lines[:first]):
        if found := short.fullmatch(line):
            held = f"{{ percent = {shown_percent(share.percent)}, held = true }}"
            value = held if share.held else shown_percent(share.percent)
            lines[number] = f"{found[1]}{value}{found[2]}"
            return "".join(lines)
    head = re.compile(rf"\s*\[\s*(?:{names})\s*\]\s*(?:#.*)?\s*")
    start = next((n for n in range(first, len(lines)) if head.fullmatch(lines[n])), None)
    if start is None:
        return "".join(lines) + _table(rule, share)
    after = range(start + 1, len(lines))
    end = next((n for n in after if lines[n].lstrip().startswith("[")), len(lines))
    body = lines[start + 1 : end]
    percent = _assigned(body, "percent", shown_percent(share.percent))
    if not _assigned(body, "held", "true" if share.held else "false") and share.held:
        body.insert(percent, "held = true\n")
    return "".join(lines[: start + 1] + body + lines[end:])


def _assigned(body: list[str], key: str, value: str) -> int:
    """Set `key` in the lines of a table; return the number of lines up to it, 0 = not there."""
    pattern = re.compile(rf"(\s*{key}\s*=\s*)[^#\s]+(.*)", re.DOTALL)
    for number, line in enumerate(body):
        if found := pattern.fullmatch(line):
            body[number] = f"{found[1]}{value}{found[2]}"
            return number + 1
    return 0


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _table(name: str, share: Share) -> str:
    held = "held = true\n" if share.held else ""
    return f"\n[{_key(name)}]\npercent = {shown_percent(share.percent)}\n{held}"


def _number(percent: float) -> float:
    return int(percent) if percent.is_integer() else percent
