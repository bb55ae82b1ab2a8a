"""What the runner answers in the protocol: right, counted, and without calling the app."""

from __future__ import annotations

import time

import pytest

from benchmarks import protocol_refusal
from resilience_mw.runner.uvicorn.simple import simple_request

from .client import COMBINATIONS, Client, get, launch, times

SIMPLE = {
    "plain": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "no fields": b"GET / HTTP/1.1\r\n\r\n",
    "HEAD": b"HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n",
    "browser": b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade-Insecure-Requests: 1\r\nAccept: */*\r\n\r\n",
    "keep-alive": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
}

NOT_SIMPLE = {
    "half": b"GET / HTTP/1.1\r\nHost: a\r\n",
    "two": b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "method": b"DELETE / HTTP/1.1\r\nHost: a\r\n\r\n",
    "lower-case method": b"get / HTTP/1.1\r\nHost: a\r\n\r\n",
    "1.0": b"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
    "absolute": b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "length": b"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "chunked": b"GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n",
    "close": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "upgrade": b"GET / HTTP/1.1\r\nUPGRADE: websocket\r\nConnection: Upgrade\r\n\r\n",
    "expect": b"GET / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nHost: a\n\nGET / HTTP/1.1\r\n\r\n",
    "blank": b"\r\n\r\n",
    "body behind": b"GET / HTTP/1.1\r\nHost: a\r\n\r\nx",
}


@pytest.mark.parametrize("data", SIMPLE.values(), ids=list(SIMPLE))
def test_simple_requests(data):
    """They are told without a parser."""
    scope = simple_request(data, "")
    assert scope is not None
    assert scope["method"] == data.split()[0].decode()
    assert scope["path"] == data.split()[1].decode()


@pytest.mark.parametrize("data", NOT_SIMPLE.values(), ids=list(NOT_SIMPLE))
def test_other_requests(data):
    """Whatever is special, or not one request, goes to the parser."""
    assert simple_request(data, "") is None


def test_what_is_read_of_a_simple_request():
    """Path below the mount point, query and fields, as ASGI has them."""
    data = b"GET /a%20b?c=d HTTP/1.1\r\nHost: a\r\nX-User:  me \r\nAccept:*/*\r\n\r\n"
    scope = simple_request(data, "/shop")
    assert scope is not None
    assert scope["path"] == "/shop/a b"
    assert scope["query_string"] == b"c=d"
    assert list(scope["headers"]) == [(b"host", b"a"), (b"x-user", b"me"), (b"accept", b"*/*")]


def calls(server) -> int:
    """Return how often the guard was called; itself once more."""
    return int(get(server, "/calls").body)


@pytest.mark.parametrize("on", COMBINATIONS.values(), ids=list(COMBINATIONS))
def test_refusals(serve, opened, on):
    """The only slot is taken: every kind of request is refused, on connections that go on."""
    server = serve(launch(*times(shutdown=0.2, keep_alive=1.0), app="one", **on))
    holder = opened.enter_context(Client(server))
    holder.ask("/slow/4")
    time.sleep(0.2)
    before = calls(server)
    client = opened.enter_context(Client(server))
    for _ in range(3):
        answer = client.get("/page")
        assert (answer.status, answer.body) == (503, b"Service Busy")
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["server"] == "uvicorn"
        assert "date" in answer.headers
        assert not answer.closes
    client.send(b"HEAD /page HTTP/1.1\r\nHost: a\r\n\r\n")
    assert client.read(head=True).headers["content-length"] == "12"
    client.send(b"POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12")
    assert client.read().status == 503
    client.send(b"345")
    assert client.get("/livez").body == b"ok"
    client.send(2 * b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n")
    assert [client.read().status for _ in range(2)] == [503, 503]
    client.send(b"GET /page HTTP/1.1\r\nHo")
    time.sleep(0.1)
    client.send(b"st: a\r\n\r\n")
    assert client.read().status == 503
    assert client.get("/slow/0?x").status == 503
    assert calls(server) == before + 1, "nothing but the question itself reached the guard"
    client.send(
        b"POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    )
    answer = client.read()
    assert answer.status == 503
    last = opened.enter_context(Client(server))
    last.send(b"GET /page HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = last.read()
    assert (answer.status, answer.closes) == (503, True)
    assert last.ended(5)
    idle = opened.enter_context(Client(server))
    assert idle.get("/page").status == 503
    assert idle.get("/page").status == 503
    began = time.monotonic()
    assert idle.ended(5)
    assert time.monotonic() - began > 0.5, "kept for as long as any other connection"
    assert holder.read().status == 200
    assert get(server, "/page").status == 200, "who finds a slot is served"


@pytest.mark.parametrize("on", COMBINATIONS.values(), ids=list(COMBINATIONS))
def test_a_refusal_while_draining(serve, opened, on):
    """It is the last response on its connection, too."""
    server = serve(launch(*times(delay=5.0, shutdown=0.2), app="one", **on))
    holder = opened.enter_context(Client(server))
    holder.ask("/slow/2")
    time.sleep(0.2)
    clients = [opened.enter_context(Client(server)) for _ in range(2)]
    assert [client.get("/page").closes for client in clients] == [False, False]
    server.signal(15)
    time.sleep(0.3)
    answer = clients[0].get("/page")
    assert (answer.status, answer.closes) == (503, True)
    assert clients[0].ended(5)
    server.signal(15)


def test_probes_are_answered_behind_a_busy_loop(serve, opened):
    """A crowd that keeps the loop busy does not keep a new connection's probe from its answer."""
    server = serve(launch(*times(shutdown=0.5), "--limit-max-concurrent-requests=2", loop="uvloop"))
    crowd = [opened.enter_context(Client(server)) for _ in range(60)]
    for client in crowd:
        client.ask("/block/0.05")
    time.sleep(0.1)
    began = time.monotonic()
    assert get(server, "/livez").body == b"ok"
    assert time.monotonic() - began < 1.0
    assert {client.read().status for client in crowd} == {200, 503}


def test_what_a_refusal_costs():
    """The benchmark works, and finds the protocol cheaper than the middleware in the same run."""
    row = protocol_refusal.measure("httptools", "asyncio", seconds=0.4, rounds=1)
    assert set(row) == {"protocol", "middleware", "by hand"}
    assert row["protocol"] < 0.8 * row["middleware"]
