"""Who gets in, who is refused, and with what."""

from __future__ import annotations

import pytest

from resilience_mw.core import Gate, HealthPolicy

from .drivers import Driver
from .script import ANSWER, HOLD, STREAM, Chunk, Start

BUSY = b"Service Busy"


def test_a_request_below_the_limit_gets_the_apps_answer_unchanged(driver: Driver):
    """Status, headers and body pass as the app gave them, and the slot comes back."""
    driver.build(Gate(1))
    response = driver.send((Start(201, (("X-App", "yes"),)), Chunk(b"a"), Chunk(b"b"))).result()
    assert (response.status, response.body, response.header("x-app")) == (201, b"ab", "yes")
    snapshot = driver.eventually(lambda now: now.inflight == 0)
    assert (snapshot.admitted, snapshot.refused) == (1, {})


def test_a_request_above_the_limit_is_refused_at_once(driver: Driver):
    """503, Service Busy, Retry-After, Content-Length; the app is never entered."""
    driver.build(Gate(1))
    holder = driver.send(HOLD).paused()
    late = driver.send()
    response = late.result()
    assert (response.status, response.body, response.error) == (503, BUSY, None)
    assert response.header("retry-after") == "1"
    assert response.header("content-length") == str(len(BUSY))
    assert response.header("content-type") == "text/plain; charset=utf-8"
    assert not late.entered.is_set()
    assert driver.snapshot().refused == {"limit": 1}
    assert holder.finish().body == b"ok"
    assert driver.eventually(lambda now: now.inflight == 0).admitted == 1


def test_the_limit_is_the_number_that_run_at_once(driver: Driver):
    """Exactly as many run as the limit says, and each end makes room for exactly one."""
    driver.build(Gate(3))
    holders = [driver.send(HOLD).paused() for _ in range(3)]
    assert driver.snapshot().inflight == 3
    assert driver.send().result().status == 503
    holders.pop().finish()
    driver.eventually(lambda now: now.inflight == 2)
    holders.append(driver.send(HOLD).paused())
    assert driver.send().result().status == 503
    for holder in holders:
        assert holder.finish().status == 200
    driver.eventually(lambda now: now.inflight == 0)


def test_a_refusal_of_head_has_the_headers_but_no_body(driver: Driver):
    """Content-Length says what GET would have got."""
    driver.build(Gate(1))
    driver.send(HOLD).paused()
    response = driver.send(method="HEAD").result()
    assert (response.status, response.body) == (503, b"")
    assert response.header("content-length") == str(len(BUSY))


def test_an_answer_to_head_keeps_its_content_length(driver: Driver):
    """The app's own length passes, though it sends no body."""
    driver.build(Gate(1))
    response = driver.send((Start(200, (("Content-Length", "1234"),)),), method="HEAD").result()
    assert (response.status, response.body) == (200, b"")
    assert response.header("content-length") == "1234"
    driver.eventually(lambda now: now.inflight == 0)


def test_an_answer_without_a_body_ends_too(driver: Driver):
    """204 has nothing to iterate over; its slot comes back all the same."""
    driver.build(Gate(1))
    for _ in range(2):
        response = driver.send((Start(204),)).result()
        assert (response.status, response.body) == (204, b"")
        driver.eventually(lambda now: now.inflight == 0)


def test_an_exempt_path_is_neither_counted_nor_refused(driver: Driver):
    """Static files pass a full gate, and their ends give no slot away."""
    driver.build(Gate(1, exempt=("/static/", "/media/")))
    holder = driver.send(HOLD).paused()
    for path in ("/static/logo.png", "/media/film"):
        assert driver.send(path=path).result().body == b"ok"
    assert driver.send(path="/statics").result().status == 503
    snapshot = driver.snapshot()
    assert (snapshot.inflight, snapshot.admitted) == (1, 1)
    holder.finish()
    assert driver.eventually(lambda now: now.inflight == 0).refused == {"limit": 1}


def test_an_exempt_path_is_judged_below_the_mount_point(driver: Driver):
    """A prefix is of the app's own paths, wherever the app is mounted."""
    driver.build(Gate(1, exempt=("/static/",)))
    driver.send(HOLD).paused()
    assert driver.send(path="/static/a", root="/shop").result().status == 200
    assert driver.send(path="/a", root="/static").result().status == 503


def test_only_the_gate_that_exempts_a_path_skips_it(driver: Driver):
    """Of two gates each has its own prefixes, and each gives back only what it took."""
    driver.build(Gate(2, exempt=("/a/",), name="outer"), Gate(1, exempt=("/b/",), name="inner"))
    calls = [driver.send(HOLD, path).paused() for path in ("/a/", "/b/", "/b/")]
    outer, inner = driver.snapshot().policies
    assert (outer.inflight, inner.inflight) == (2, 1)  # type: ignore[attr-defined]
    assert driver.send(path="/b/").result().status == 503  # the outer gate is full
    assert driver.send(path="/a/").result().status == 503  # the inner gate is full
    for call in calls:
        call.finish()
    snapshot = driver.eventually(lambda now: now.inflight == 0)
    outer, inner = snapshot.policies
    assert (outer.inflight, inner.inflight) == (0, 0)  # type: ignore[attr-defined]


def test_a_gate_further_in_that_refuses_frees_the_slot_of_the_outer(driver: Driver):
    """Whoever was entered is left, in reverse, when somebody after them refuses."""
    driver.build(Gate(5, name="outer"), Gate(1, name="inner"))
    holder = driver.send(HOLD).paused()
    assert driver.send().result().status == 503
    outer, inner = driver.snapshot().policies
    assert (outer.inflight, inner.inflight) == (1, 1)  # type: ignore[attr-defined]
    holder.finish()
    driver.eventually(lambda now: now.policies[0].inflight == 0)  # type: ignore[attr-defined]


@pytest.mark.parametrize("root", ["", "/mounted", "/livez"])
def test_probes_are_answered_below_the_mount_point(driver: Driver, root: str):
    """`root_path` and `SCRIPT_NAME` do not hide the probes."""
    driver.build(HealthPolicy(), Gate(1))
    for path in ("/livez", "/readyz", "/startupz"):
        probe = driver.send(path=path, root=root)
        response = probe.result()
        assert (response.status, response.body) == (200, b"ok")
        assert response.header("content-length") == "2"
        assert response.header("cache-control") == "no-store"
        assert not probe.entered.is_set()
    assert driver.send(path="/livez/more", root=root).result().body == b"ok"
    health, gate = driver.eventually(lambda now: now.inflight == 0).policies
    assert (health.probes, gate.admitted) == (3, 1)  # type: ignore[attr-defined]


def test_probes_answer_head_without_a_body_and_refuse_other_methods(driver: Driver):
    """HEAD has the headers of GET; whoever posts to a probe is told what is allowed."""
    driver.build(HealthPolicy())
    head = driver.send(path="/livez", method="HEAD").result()
    assert (head.status, head.body, head.header("content-length")) == (200, b"", "2")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        post = driver.send(path="/readyz", method=method).result()
        assert (post.status, post.header("allow")) == (405, "GET, HEAD")


def test_probes_pass_a_full_gate(driver: Driver):
    """Load is no reason to be restarted."""
    driver.build(HealthPolicy(), Gate(1))
    driver.send(HOLD).paused()
    for path in ("/livez", "/readyz", "/startupz"):
        assert driver.send(path=path).result().status == 200
    assert driver.send().result().status == 503


def test_a_drained_guard_is_not_ready_but_serves(driver: Driver):
    """Readiness turns for the balancer; requests still on their way are served."""
    driver.build(HealthPolicy(), Gate(1))
    holder = driver.send(HOLD).paused()
    driver.drain()
    ready = driver.send(path="/readyz").result()
    assert (ready.status, ready.body, ready.header("retry-after")) == (503, b"not ready", None)
    assert driver.send(path="/livez").result().status == 200
    assert driver.send(path="/startupz").result().status == 200
    assert holder.finish().body == b"ok"
    driver.eventually(lambda now: now.inflight == 0)
    assert driver.send(ANSWER).result().status == 200
    assert driver.send(STREAM).paused().finish().body == b"first last"
