"""One request and its response as the policies see them, whatever the protocol."""

from __future__ import annotations

from typing import Any, Final

KEY = "resilience_mw"
"""Where an ASGI scope or a WSGI environ holds the exchange while the request runs, for guards
further in and for whoever is curious."""


class Reply:
    """An answer given instead of calling the app.

    Rendered once, for both protocols, and shared by all requests that get it: never change it.

    Args:
        status: HTTP status code.
        body: text; never sent in answer to HEAD.
        headers: ``(name, value)`` pairs; Content-Type and Content-Length are added.
        reason: low-cardinality cause of a refusal (``limit``, ``queue_full``, ``queue_timeout``,
            ``waited``, ``saturated``, ``deadline``, ``draining``), or ``None`` for an answer that
            is no refusal (a health probe).
        close: ask an HTTP/1 server to close the connection after this answer.
        kind: what Content-Type says.
    """

    __slots__ = ("body", "close", "headers", "raw_headers", "reason", "status")

    def __init__(
        self,
        status: int,
        body: str = "",
        headers: tuple[tuple[str, str], ...] = (),
        *,
        reason: str | None = None,
        close: bool = False,
        kind: str = "text/plain; charset=utf-8",
    ) -> None:
        self.status = status
        self.body = body.encode()
        self.headers = headers
        if status not in (204, 304):  # RFC 9110: these have no content, and say nothing of it
            length = str(len(self.body))
            self.headers += (("Content-Type", kind), ("Content-Length", length))
        self.raw_headers = tuple((n.lower().encode(), v.encode()) for n, v in self.headers)
        self.reason = reason
        self.close = close

    def __repr__(self) -> str:
        return f"Reply({self.status}, {self.body!r}, reason={self.reason!r})"


def busy(reason: str, retry_after: int = 1) -> Reply:
    """Return the refusal of every limiter: 503 ``Service Busy`` with Retry-After in seconds."""
    return Reply(503, "Service Busy", (("Retry-After", str(retry_after)),), reason=reason)


class Skip:
    """The decision "pass, and do not tell me how it ended" (an exempt path)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "SKIP"


SKIP: Final = Skip()


class Exchange:
    """One request on its way through the policies.

    A driver subclasses it for its protocol. Everything that is the same for almost every request
    is a class-level default, so that a request costs as few attribute stores as possible.
    """

    arrived: float
    """When the driver first saw the request (monotonic seconds)."""

    queue_wait = 0.0
    """Seconds it had waited before that, as far as the driver has measured."""

    admitted = 0.0
    """When the app was entered after waiting in our queue; 0 = it did not wait there."""

    deadline: float | None = None
    """When the response must have started (monotonic seconds), or ``None``."""

    target: Any = None
    """The app that a rerouting policy chose; ``None`` = the guarded app."""

    status = 0
    """Status code of the response; 0 until it starts, or when nobody observes it."""

    answered_at = 0.0
    """When the response started (monotonic seconds); 0 until then, or when nobody observes it."""

    refused: str | None = None
    """Why a policy further in answered instead of the app; ``None`` = the app was called."""

    overdue = False
    """True once the deadline passed before a response had started."""

    rank: float | None = None
    """How important it is, the smaller the more; ``None`` = nobody had to know."""

    outer: Exchange | None = None
    """The same request as a guard further out sees it, if there is one."""

    done = False
    """True once the app has really ended."""

    @property
    def full_path(self) -> str:
        """The path as cheaply as the driver has it; it may begin with the mount point."""
        return self.path

    @property
    def path(self) -> str:
        """Path of the request below the mount point, decoded."""
        raise NotImplementedError  # pragma: no cover - every driver has its own

    @property
    def raw_path(self) -> str | None:
        """The path as the client wrote it, with its escapes; ``None`` where the server hides it."""
        return None

    @property
    def method(self) -> str:
        """Request method in upper case."""
        raise NotImplementedError  # pragma: no cover - every driver has its own

    @property
    def query(self) -> str:
        """What stands after the question mark, as it was sent."""
        return ""

    @property
    def peer(self) -> str | None:
        """Address of whoever is connected to the server; ``None`` on a Unix socket."""
        raise NotImplementedError  # pragma: no cover - every driver has its own

    @property
    def certain_peer(self) -> str | None:
        """`peer`, unless a header of the client's may have named it: then no address at all."""
        return self.peer

    @property
    def client(self) -> str | None:
        """Address of the client as the server tells it: a proxy's word may be in it."""
        return self.peer

    def header(self, name: str) -> str | None:
        """Return a request header; several of the same name are joined, as a rule with commas."""
        raise NotImplementedError  # pragma: no cover - every driver has its own

    def waited(self, now: float) -> float:
        """Return for how many seconds this request has waited by ``now``, never negative."""
        return self.queue_wait + max(0.0, now - self.arrived)

    def nest(self, outer: Exchange) -> None:
        """Note that a guard further out is handling this request too, with its own deadline."""
        self.outer = outer
        if outer.deadline is not None:
            self.limit(outer.deadline)

    def limit(self, deadline: float) -> None:
        """Set the deadline, unless an earlier one holds."""
        if self.deadline is None or deadline < self.deadline:
            self.deadline = deadline

    @property
    def forwarded(self) -> bool:
        """Whether the app was called (False: a policy answered, which is no sample of the app)."""
        return self.refused is None
