"""What is wrong, for those who may know: as Kubernetes lists it, or as a health document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from ..core.exchange import Reply
from ..core.snapshot import CheckResult
from ..signals.proxies import TrustedProxies

DOCUMENT = "application/health+json"
"""The media type of draft-inadarei-api-health-check-06."""

LIST = "list"

_UNCACHED = (("Cache-Control", "no-store"), ("Vary", "Accept"))


class Details:
    """Lists the checks behind a probe's answer.

    ``?verbose`` asks for lines like those of the Kubernetes API server, and ``Accept:
    application/health+json`` for the document. Both name the checks and why they fail, in the few
    words of `CheckFailed`: no text of an exception, no address.

    Args:
        networks: from where details may be asked for; ``*`` = from everywhere.
    """

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks = TrustedProxies(networks)

    def form(self, query: str, accept: str) -> str | None:
        """Return in which form a client asks for details; ``None`` = it does not."""
        # Looked for as a whole first: taking 64 KiB of commas apart takes ten milliseconds.
        if DOCUMENT in accept.lower() and any(map(_is_document, accept.split(","))):
            return DOCUMENT
        if "verbose" in query and any(map(_is_verbose, query.split("&"))):
            return LIST
        return None

    def allows(self, peer: str | None) -> bool:
        """Whether the client at this address may know."""
        return self._networks.trusts(peer)

    def describe(
        self, form: str, probe: str, reply: Reply, state: str, results: Sequence[CheckResult]
    ) -> Reply:
        """Return ``reply`` to a probe with its reasons."""
        if form == DOCUMENT:
            body = json.dumps(_document(reply.status, state, results))
            return Reply(reply.status, body, _UNCACHED, kind=DOCUMENT)
        name = probe.rpartition("/")[2] or probe
        lines = [f"[+]lifecycle ok: {state}"]
        if not _serves(reply.status, results):
            lines = [f"[-]lifecycle failed: {state}"]
        lines += [_line(result) for result in results]
        lines.append(f"{name} check {'passed' if reply.status == 200 else 'failed'}")
        return Reply(reply.status, "\n".join(lines) + "\n", _UNCACHED)


def _is_document(accepted: str) -> bool:
    return accepted.partition(";")[0].strip().lower() == DOCUMENT


def _is_verbose(parameter: str) -> bool:
    return parameter.partition("=")[0] == "verbose"


def _serves(status: int, results: Sequence[CheckResult]) -> bool:
    """Whether it is not the state that makes a probe fail."""
    return status == 200 or any(result.critical and not result.passing for result in results)


def _line(result: CheckResult) -> str:
    if result.passing:
        return f"[+]{result.name} ok"
    note = "" if result.critical else " (not critical)"
    return f"[-]{result.name} failed: {result.reason}{note}"


def _document(status: int, state: str, results: Sequence[CheckResult]) -> dict[str, Any]:
    warns = any(not result.passing for result in results)
    whole = "fail" if status != 200 else "warn" if warns else "pass"
    document: dict[str, Any] = {"status": whole, "notes": [f"lifecycle: {state}"]}
    if results:
        document["checks"] = {result.name: [_entry(result)] for result in results}
    return document


def _entry(result: CheckResult) -> dict[str, Any]:
    status = "pass" if result.passing else "fail" if result.critical else "warn"
    entry: dict[str, Any] = {"status": status}
    if result.observed_at is not None:
        entry["time"] = datetime.fromtimestamp(result.observed_at, UTC).isoformat("T", "seconds")
    if not result.passing:
        entry["output"] = result.reason
    return entry
