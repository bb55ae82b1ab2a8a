"""Bodies of every kind, and an app that returns one."""

from __future__ import annotations

import io


class Iterable:
    """A body of the app's own class."""

    def __init__(self, chunks=(b"a", b"b")) -> None:
        self.chunks = list(chunks)
        self.closed = 0

    def __iter__(self):
        return iter(self.chunks)

    def close(self) -> None:
        self.closed += 1


class Sized(Iterable):
    """One that knows how long it is."""

    def __len__(self) -> int:
        return len(self.chunks)


class Sequence(list[bytes]):
    """A list with a close of its own."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


def answering(body):
    """Return an app that returns ``body``."""

    def app(environ, start_response):
        start_response("200 OK", [])
        return body

    return app


def generate():
    """Return a generator that was not begun."""
    yield b"a"
    yield b"b"


BODIES = {
    "list": lambda: [b"a", b"b"],
    "tuple": lambda: (b"a", b"b"),
    "list of one": lambda: [b"ab"],
    "empty": list,
    "generator": generate,
    "iterator": lambda: iter([b"a", b"b"]),
    "iterable": Iterable,
    "sized": Sized,
    "list subclass": lambda: Sequence([b"a", b"b"]),
    "file": lambda: io.BytesIO(b"ab"),
}
