"""The rules for HAProxy: one frontend that says which rule a request falls under, two backends."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from ...core.rollout import RolloutRule
from ...core.rollout.hashing import PLACES
from .plan import ODD, Plan, listener


def haproxy(plan: Plan, *, listen: str = "8080") -> list[str]:
    """Return the lines of a file to give HAProxy beside its own.

    Args:
        plan: the roll-out.
        listen: what the frontend in it listens on: a port, or ``host:port``.
    """
    where = listener(listen)
    return list(_lines(plan, where if ":" in where else f":{where}"))


def _lines(plan: Plan, listen: str) -> Iterator[str]:
    name = plan.name
    yield "# Written by `resilience-mw export haproxy`: haproxy -f haproxy.cfg -f this.cfg"
    yield from (f"# {note}" for note in plan.notes)
    yield f"frontend {name}"
    yield f"    bind {listen}"
    yield "    mode http"
    yield "    timeout client 60s"
    yield "    option forwardfor"
    yield "    http-request set-header X-Forwarded-Proto %[ssl_fc,iif(https,http)]"
    yield "    # Websockets are passed on, and no other protocol."
    yield "    http-request del-header Upgrade unless { req.hdr(upgrade) -i websocket }"
    yield ""
    yield "    # Paths that HAProxy and the app behind it may read differently: the old stack's."
    yield f"    acl {name}_odd path -m reg -i {_quoted(ODD)}"
    for number, rule in enumerate(plan.rules, 1):
        yield ""
        yield from (f"    # {remark}" for remark in plan.remarks(rule))
        yield from _rule(name, number, rule)
    yield ""
    for number, rule in enumerate(plan.rules, 1):
        places = plan.places(rule)
        if places:
            drawn = "" if places == PLACES else _drawn(rule, places)
            yield f"    use_backend {name}_new if {{ var(txn.{name}) -m int {number} }}{drawn}"
    yield f"    default_backend {name}_old"
    for stack, address in (("old", plan.old), ("new", plan.new)):
        yield ""
        yield f"backend {name}_{stack}"
        yield "    mode http"
        yield "    timeout connect 5s"
        yield "    timeout server 60s"
        yield f"    server {stack} {address}"


def _rule(name: str, number: int, rule: RolloutRule) -> Iterator[str]:
    """Write which requests a rule is about, unless an earlier one is."""
    conditions = [f"!{{ var(txn.{name}) -m found }}", f"!{name}_odd"]
    if rule.path is not None or rule.prefix is not None:
        test = f"{name}_{number}_path"
        conditions.append(test)
        if rule.path is not None or not (rule.prefix or "").endswith("/"):
            yield f"    acl {test} path,url_dec -m str {_quoted(rule.path or rule.prefix or '')}"
        if rule.prefix is not None:
            yield f"    acl {test} path,url_dec -m beg {_quoted(rule.prefix.rstrip('/') + '/')}"
    if rule.host is not None:
        conditions.append(f"{name}_{number}_host")
        hosts = f"{_quoted(rule.host)} {_quoted(rule.host + '.')}"
        yield f"    acl {conditions[-1]} req.hdr(host),host_only,lower -m str {hosts}"
    if rule.methods:
        conditions.append(f"{name}_{number}_method")
        yield f"    acl {conditions[-1]} method -m str {' '.join(map(_quoted, rule.methods))}"
    yield f"    http-request set-var(txn.{name}) int({number}) if {' '.join(conditions)}"


def _drawn(rule: RolloutRule, places: int) -> str:
    """Return the condition that a request is in the share of its rule."""
    if rule.by == "request":
        return f" {{ rand({PLACES}) lt {places} }}"
    if rule.by == "server":
        key = "hostname"
    elif rule.cookie is not None:
        key = f"req.cook({rule.cookie})"
    elif rule.header is not None:
        key = f"req.hdr({rule.header})"
    else:
        key = "src"
    # The seed keeps those who meet one new page first from being the first at every other, too.
    hashed = f"{key},xxh32({crc32(rule.name.encode()) % 2**31}),mod({PLACES})"
    known = "" if key in ("src", "hostname") else f" {{ {key},length gt 0 }}"
    return f"{known} {{ {hashed} lt {places} }}"


def _quoted(text: str) -> str:
    """Return a text as HAProxy reads it, with nothing in it special."""
    return "'" + text.replace("'", "'\\''") + "'"
