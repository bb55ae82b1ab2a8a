"""Django in asynchronous mode, through its ASGI handler."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading

import pytest
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponse, StreamingHttpResponse
from django.test import AsyncRequestFactory

from resilience_mw import Config, Limit, protect, remaining
from resilience_mw import django as resilience
from resilience_mw.core import DeadlinePolicy, Gate
from resilience_mw.django import Guard
from tests.django.drive import Call, run, until
from tests.django.project import urls

requests = AsyncRequestFactory()


def state():
    snapshot = resilience.snapshot()
    assert snapshot is not None
    return snapshot


async def nap(seconds=20.0):
    """Wait longer than any test here."""
    await asyncio.sleep(seconds)


@pytest.fixture
def limited(configure):
    """A limit of two, and deadlines that no test reaches by accident."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 2}, "deadline": {"timeout": 60}})


@pytest.mark.usefixtures("limited")
def test_a_request_passes_and_gives_its_slot_back():
    """Both kinds of view run, and nothing stays in flight."""

    async def test():
        app = ASGIHandler()
        assert (await Call(app, "/sync").answer())[0] == 200
        assert (await Call(app, "/async").answer())[0] == 200
        await until(lambda: state().inflight == 0)
        assert state().admitted == 2

    run(test)


@pytest.mark.usefixtures("limited")
def test_an_async_view_stays_on_the_loop():
    """The middleware adds no change of threads, and both kinds of view see the time left."""

    async def test():
        app = ASGIHandler()
        _, body = await Call(app, "/async").answer()
        assert f'"thread": {threading.get_ident()}'.encode() in body
        assert b'"remaining": null' not in body
        _, body = await Call(app, "/sync").answer()
        assert b'"remaining": null' not in body
        assert remaining() is None

    run(test)


@pytest.mark.usefixtures("limited")
def test_probes_and_refusals():
    """A full gate refuses in Django's own response, and probes never wait."""

    async def test():
        app = ASGIHandler()
        urls.held.update(a=threading.Event(), b=threading.Event())
        first = [Call(app, "/hold/a"), Call(app, "/hold/b")]
        await until(lambda: len(urls.seen) == 2)
        refused = Call(app, "/async")
        assert await refused.answer() == (503, b"Service Busy")
        headers = {name.lower(): value for name, value in refused.messages[0]["headers"]}
        assert headers[b"retry-after"] == b"1"
        assert headers[b"content-length"] == b"12"
        assert await Call(app, "/livez").answer() == (200, b"ok")
        assert await Call(app, "/async", method="HEAD").answer() == (503, b"")
        for event in urls.held.values():
            event.set()
        for call in first:
            assert (await call.answer())[0] == 200
        await until(lambda: state().inflight == 0)
        assert state().refused == {"limit": 2}

    run(test)


@pytest.mark.parametrize("path", ["/stream", "/async-stream"])
@pytest.mark.usefixtures("limited")
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume synchronous iterators")
def test_a_stream_holds_its_slot_until_it_is_closed(path):
    """While Django sends the chunks, the request counts; the close comes from another thread."""

    async def test():
        assert await Call(ASGIHandler(), path).answer() == (200, b"1\n1\n")
        await until(lambda: state().inflight == 0)

    run(test)


def test_a_stream_that_is_never_closed_loses_its_slot_with_itself():
    """A response that another middleware replaces is collected, not closed."""

    async def test():
        async def view(request):
            return StreamingHttpResponse([b"a"])

        guard = Guard(view, Gate(1))
        response = await guard(requests.get("/"))
        assert response.status_code == 200
        assert guard.snapshot().inflight == 1
        del response
        gc.collect()
        await until(lambda: guard.snapshot().inflight == 0)

    run(test)


def test_a_stream_that_fails_while_it_is_sent_gives_its_slot_back():
    """Django then does not close it; the end of the task that sends it is the end."""

    async def test():
        kept = []

        async def view(request):
            return StreamingHttpResponse([b"a"])

        guard = Guard(view, Gate(1))

        async def send():
            kept.append(await guard(requests.get("/")))
            assert guard.snapshot().inflight == 1
            raise RuntimeError("the stream failed")

        with pytest.raises(RuntimeError, match="the stream failed"):
            await asyncio.create_task(send())
        await until(lambda: guard.snapshot().inflight == 0)
        kept[0].close()
        await asyncio.sleep(0)

    run(test)


def test_a_stream_closed_after_its_loop_has_ended_does_no_harm():
    """The request ended with the loop."""
    responses = []

    async def test():
        async def view(request):
            return StreamingHttpResponse([b"a"])

        responses.append(await Guard(view, Gate(1))(requests.get("/")))

    run(test)
    responses[0].close()


def test_exceptions_pass_and_give_the_slot_back():
    """What the chain raises, the next middleware out sees."""

    async def test():
        async def view(request):
            raise RuntimeError("failed")

        guard = Guard(view, Gate(1), DeadlinePolicy(20.0))
        with pytest.raises(RuntimeError, match="failed"):
            await guard(requests.get("/"))
        assert guard.snapshot().inflight == 0

    run(test)


def test_the_deadline_answers_for_a_coroutine_and_ends_it(configure):
    """504 in time, and the view is cancelled."""
    configure(RESILIENCE={"deadline": {"timeout": 0.05}})

    async def test():
        assert await Call(ASGIHandler(), "/stay").answer() == (504, b"Gateway Timeout")
        await until(lambda: state().inflight == 0)
        assert urls.seen == ["begin stay", "end stay"]
        assert state().refused["deadline"] == 1

    run(test)


def test_the_deadline_answers_for_a_thread_and_keeps_its_slot(configure):
    """504 in time; the slot is taken for as long as the synchronous view really works."""
    configure(RESILIENCE={"limit": {"max_concurrent_requests": 1}, "deadline": {"timeout": 0.1}})

    async def test():
        app = ASGIHandler()
        urls.held["a"] = threading.Event()
        call = Call(app, "/hold/a")
        assert await call.answer() == (504, b"Gateway Timeout")
        assert urls.seen == ["begin a"]
        for _ in range(3):
            assert state().inflight == 1
            assert (await Call(app, "/async").answer())[0] == 503
            await asyncio.sleep(0.03)
        urls.held["a"].set()
        await until(lambda: state().inflight == 0)
        assert urls.seen == ["begin a", "end a"]
        await asyncio.wait_for(call.task, 20)
        assert (await Call(app, "/async").answer())[0] == 200

    run(test)


@pytest.mark.usefixtures("limited")
def test_a_client_that_leaves_cancels_its_view():
    """As without the middleware, and the slot is given back."""

    async def test():
        call = Call(ASGIHandler(), "/stay")
        await until(lambda: bool(urls.seen))
        call.leave()
        await asyncio.wait_for(call.task, 20)
        assert urls.seen == ["begin stay", "end stay"]
        assert state().inflight == 0
        assert call.messages == []

    run(test)


@pytest.mark.usefixtures("limited")
def test_a_client_that_leaves_a_thread_keeps_its_slot_until_the_thread_ends():
    """A disconnect stops no thread, so its load still counts."""

    async def test():
        urls.held["a"] = threading.Event()
        call = Call(ASGIHandler(), "/hold/a")
        await until(lambda: bool(urls.seen))
        call.leave()
        await asyncio.sleep(0.05)
        assert state().inflight == 1
        urls.held["a"].set()
        await asyncio.wait_for(call.task, 20)
        assert state().inflight == 0

    run(test)


def test_a_request_waits_for_a_slot_in_order():
    """In a queue nobody holds a thread, and who came first is served first."""

    async def test():
        served = []
        go_on = asyncio.Event()

        async def view(request):
            served.append(request.path)
            await go_on.wait()
            return HttpResponse("done")

        guard = Guard(view, Gate(1, max_queue=2, max_wait=20.0))
        calls = []
        for path in ("/1", "/2", "/3"):
            calls.append(asyncio.ensure_future(guard(requests.get(path))))
            await asyncio.sleep(0)
        await until(lambda: guard.snapshot().queued == 2)
        go_on.set()
        assert [response.status_code for response in await asyncio.gather(*calls)] == [200] * 3
        assert served == ["/1", "/2", "/3"]
        assert guard.snapshot().inflight == 0

    run(test)


def test_a_client_that_leaves_the_queue_never_reaches_the_view():
    """Its place is given up at once."""

    async def test():
        served = []
        go_on = asyncio.Event()

        async def view(request):
            served.append(request.path)
            await go_on.wait()
            return HttpResponse("done")

        guard = Guard(view, Gate(1, max_queue=2, max_wait=20.0))
        first = asyncio.ensure_future(guard(requests.get("/1")))
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(guard(requests.get("/2")))
        await until(lambda: guard.snapshot().queued == 1)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert guard.snapshot().queued == 0
        go_on.set()
        await first
        assert served == ["/1"]

    run(test)


def test_a_view_that_swallows_its_cancellation_is_still_closed():
    """Its response goes back to Django, which closes it."""

    async def test():
        async def view(request):
            try:
                await nap()
            except asyncio.CancelledError:
                return HttpResponse("never mind")

        guard = Guard(view, Gate(1))
        call = asyncio.ensure_future(guard(requests.get("/")))
        await until(lambda: guard.snapshot().inflight == 1)
        await asyncio.sleep(0.01)
        call.cancel()
        assert (await call).content == b"never mind"
        assert guard.snapshot().inflight == 0

    run(test)


def test_a_stream_that_nobody_waits_for_any_more_gives_its_slot_back():
    """A view that outlives even the end of its server's patience is not waited for for ever."""

    async def test():
        go_on = asyncio.Event()

        async def view(request):
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except asyncio.CancelledError:
                    continue
            return StreamingHttpResponse([b"a"])

        guard = Guard(view, Gate(1))
        call = asyncio.ensure_future(guard(requests.get("/")))
        await until(lambda: guard.snapshot().inflight == 1)
        for _ in range(2):
            await asyncio.sleep(0.01)
            call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert guard.snapshot().inflight == 1
        go_on.set()
        await until(lambda: guard.snapshot().inflight == 0)

    run(test)


@pytest.mark.parametrize("streaming", [True, False])
def test_a_response_after_the_deadline_is_discarded(streaming):
    """The client has its 504; what the late response holds is freed."""

    async def test():
        freed = []

        def broken():
            freed.append("broken")
            raise RuntimeError("cannot close")

        async def view(request):
            try:
                await nap()
            except asyncio.CancelledError:
                response = StreamingHttpResponse([b"late"]) if streaming else HttpResponse("late")
                closers = vars(response)["_resource_closers"]
                closers += [broken, lambda: freed.append("file")]
                return response

        guard = Guard(view, DeadlinePolicy(0.02), Gate(1))
        assert (await guard(requests.get("/"))).status_code == 504
        await until(lambda: guard.snapshot().inflight == 0)
        assert freed == ["broken", "file"]

    run(test)


def test_context_variables_go_in_and_come_out():
    """The task of our own is invisible to the project's middlewares."""

    async def test():
        colour = contextvars.ContextVar("colour", default="none")
        seen = []

        async def view(request):
            seen.append(colour.get())
            colour.set("red")
            return HttpResponse("painted")

        colour.set("blue")
        await Guard(view, Gate(1), DeadlinePolicy(20.0))(requests.get("/"))
        assert (seen, colour.get()) == (["blue"], "red")
        assert remaining() is None

    run(test)


@pytest.mark.usefixtures("limited")
def test_a_guarded_application_is_not_guarded_twice():
    """Behind `protect(get_asgi_application())` the middleware lets requests pass."""

    async def test():
        app = protect(ASGIHandler(), Config(limit=Limit(max_concurrent_requests=5)))
        assert (await Call(app, "/async").answer())[0] == 200
        assert (await Call(app, "/sync").answer())[0] == 200
        assert (app.snapshot().admitted, state().admitted) == (2, 0)
        assert (await Call(app, "/livez").answer())[0] == 200

    run(test)


def from_threads_only(get_response):
    """A middleware of the old kind: everything outside of it runs in a thread."""
    return lambda request: get_response(request)


async_seen: list[str] = []


def from_loops_only(get_response):
    """A middleware that knows coroutines only."""

    async def middleware(request):
        async_seen.append(request.path)
        return await get_response(request)

    return middleware


from_loops_only.sync_capable = False  # type: ignore[attr-defined]
from_loops_only.async_capable = True  # type: ignore[attr-defined]


@pytest.mark.usefixtures("limited")
def test_a_synchronous_middleware_further_in_makes_the_chain_synchronous(configure):
    """Django then calls ours in a thread, where it waits and counts like under WSGI."""
    configure(
        MIDDLEWARE=[
            "resilience_mw.django.ResilienceMiddleware",
            "tests.django.test_event_loop.from_threads_only",
        ]
    )

    async def test():
        app = ASGIHandler()
        urls.held.update(a=threading.Event(), b=threading.Event())
        calls = [Call(app, "/hold/a"), Call(app, "/hold/b")]
        await until(lambda: len(urls.seen) == 2)
        assert await Call(app, "/async").answer() == (503, b"Service Busy")
        assert await Call(app, "/livez").answer() == (200, b"ok")
        for event in urls.held.values():
            event.set()
        assert [(await call.answer())[0] for call in calls] == [200, 200]
        _, body = await Call(app, "/sync").answer()
        assert b'"remaining": null' not in body
        assert state().inflight == 0
        outside = protect(app)
        before = state().admitted
        assert (await Call(outside, "/sync").answer())[0] == 200
        assert state().admitted == before

    run(test)
