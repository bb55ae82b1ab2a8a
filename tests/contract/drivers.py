"""One adapter for each driver: how an app that follows a script is guarded, and called."""

from __future__ import annotations

import asyncio
import gc
import io
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

import uvloop

from resilience_mw import asgi, wsgi
from resilience_mw.core import Policy, Snapshot

from .apps import play, respond
from .script import ANSWER, WAIT, Call, Script

Result = TypeVar("Result")


class Driver:
    """Runs requests through policies around an app that does what each request's script says."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.guard: Any = None

    def build(self, *policies: Policy) -> None:
        """Guard the app with ``policies``."""
        raise NotImplementedError

    def send(
        self,
        script: Script = ANSWER,
        path: str = "/",
        *,
        method: str = "GET",
        root: str = "",
        closes: int = 1,
    ) -> Call:
        """Send a request; the server closes the body ``closes`` times, if it closes bodies."""
        call = Call(script, path, method, root, closes)
        self.calls.append(call)
        self.start(call)
        return call

    def start(self, call: Call) -> None:
        """Begin to serve ``call``, and return at once."""
        raise NotImplementedError

    def snapshot(self) -> Snapshot:
        """Return the guard's snapshot."""
        snapshot: Snapshot = self.guard.snapshot()
        return snapshot

    def drain(self) -> None:
        """Drain the guard."""
        self.guard.drain()

    def eventually(self, condition: Callable[[Snapshot], bool]) -> Snapshot:
        """Wait for a state that the test cannot meet at a pause, such as a filled queue."""
        deadline = time.monotonic() + WAIT
        collect_at = time.monotonic() + 0.1
        while True:
            snapshot = self.snapshot()
            if condition(snapshot):
                return snapshot
            assert time.monotonic() < deadline, snapshot
            if time.monotonic() > collect_at:
                gc.collect()  # what nobody closed ends when it is collected
            time.sleep(0.001)

    def close(self) -> None:
        """End what still runs."""
        for call in self.calls:
            call.give_up()
        for call in self.calls:
            call.close()


class Asgi(Driver):
    """`resilience_mw.asgi`, on a loop of its own in a thread."""

    name = "asgi"
    new_loop: ClassVar[Any] = staticmethod(asyncio.new_event_loop)

    def __init__(self) -> None:
        super().__init__()
        self.loop: asyncio.AbstractEventLoop = self.new_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.app: Any = None

    def build(self, *policies: Policy) -> None:
        self.app = self.guard = asgi.Guard(play, *policies)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run ``work`` on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(WAIT)

    def snapshot(self) -> Snapshot:
        async def snapshot() -> Snapshot:
            return Driver.snapshot(self)

        return self.run(snapshot())

    def drain(self) -> None:
        async def drain() -> None:
            Driver.drain(self)

        self.run(drain())

    def start(self, call: Call) -> None:
        async def start() -> None:
            task = asyncio.ensure_future(self.serve(call))
            call.cancel = lambda: self.loop.call_soon_threadsafe(task.cancel)

        self.run(start())

    async def serve(self, call: Call) -> None:
        """Be the server for one request."""
        requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, Any]:
            request = next(requests, None)
            if request is not None:
                return request
            await asyncio.wrap_future(call.gone)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            await asyncio.sleep(0)
            if message["type"] == "http.response.start":
                call.response.status = message["status"]
                call.response.headers = [(n.decode(), v.decode()) for n, v in message["headers"]]
            elif message["type"] == "http.response.body" and message.get("body"):
                call.response.chunks.append(message["body"])

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": call.method,
            "scheme": "http",
            "path": call.root + call.path,
            "root_path": call.root,
            "query_string": b"",
            "headers": [(b"host", b"example.org"), (b"x-call", str(call.number).encode())],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 80),
        }
        try:
            await self.app(scope, receive, send)
        except BaseException as error:
            call.response.error = error
        finally:
            call.ended.set()

    def close(self) -> None:
        super().close()

        async def close() -> None:
            getattr(self.guard, "close", bool)()
            await self.loop.shutdown_default_executor()
            for _ in range(3):
                await asyncio.sleep(0)

        self.run(close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(WAIT)
        self.loop.close()


class AsgiUvloop(Asgi):
    """The same on libuv."""

    name = "asgi-uvloop"
    new_loop = staticmethod(uvloop.new_event_loop)


class Wsgi(Driver):
    """`resilience_mw.wsgi`, a thread a request."""

    name = "wsgi"

    def __init__(self) -> None:
        super().__init__()
        self.app: Any = None

    def build(self, *policies: Policy) -> None:
        self.app = self.guard = wsgi.Guard(respond, *policies)

    def start(self, call: Call) -> None:
        threading.Thread(target=self.serve, args=(call,), daemon=True).start()

    def serve(self, call: Call) -> None:
        """Be the server for one request."""

        def start_response(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            call.response.status = int(status[:3])
            call.response.headers = headers
            return call.response.chunks.append

        environ = {
            "REQUEST_METHOD": call.method,
            "SCRIPT_NAME": call.root,
            "PATH_INFO": call.path,
            "QUERY_STRING": "",
            "SERVER_NAME": "example.org",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_HOST": "example.org",
            "HTTP_X_CALL": str(call.number),
            "wsgi.url_scheme": "http",
            "wsgi.multithread": True,
            "wsgi.input": io.BytesIO(),
            "gunicorn.socket": call.server_socket,
        }
        try:
            body = self.app(environ, start_response)
            try:
                for chunk in body:
                    call.response.chunks.append(chunk)
            finally:
                for _ in range(call.closes):
                    getattr(body, "close", bool)()
                del body
        except BaseException as error:
            call.response.error = error
        finally:
            call.ended.set()
