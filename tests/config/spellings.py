"""Every option with good and bad values, and the five ways to write one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from resilience_mw.config import Config, options_of, resolve
from resilience_mw.config.health_rules import KINDS

OPTIONS = {
    option.dotted: option
    for section in Config.sections().values()
    for option in options_of(section).values()
}

# Those that can be written as text.
SPELLED = {dotted: option for dotted, option in OPTIONS.items() if not option.python_only}

NAN, INF = math.nan, math.inf


def somebody(request: Any) -> str:
    """Tell users apart, badly."""
    return "somebody"


# A value other than the default, and its text if it has one.
GOOD: dict[str, tuple[Any, str]] = {
    "limit.max_concurrent_requests": (100, "100"),
    "limit.exempt": (("/static/", "/favicon.ico"), "/static/, /favicon.ico"),
    "backpressure.enabled": (False, "off"),
    "backpressure.law": ("aimd", "aimd"),
    "backpressure.initial_limit": (20, "20"),
    "backpressure.min_limit": (2, "2"),
    "backpressure.max_limit": (50, "50"),
    "backpressure.elu_max": (0.5, "0.5"),
    "backpressure.sample_window": (0.25, ".25"),
    "backpressure.smoothing_factor": (1.0, "1"),
    "backpressure.queue_size": (0, "0"),
    "backpressure.queue_timeout": (0.5, "5e-1"),
    "backpressure.exempt": (("/static/",), "/static/"),
    "backpressure.max_wait": (0.3, "0.3"),
    "backpressure.trusted_proxies": (("10.0.0.0/8", "unix"), "10.0.0.0/8, unix"),
    "backpressure.priority": ("X-Priority", "X-Priority"),
    "backpressure.user": (somebody, ""),
    "backpressure.dry_run": (True, "yes"),
    "deadline.receive_timeout": (0.0, "0"),
    "deadline.timeout": (None, "none"),
    "deadline.header": ("X-Request-Timeout", "X-Request-Timeout"),
    "health.live_path": ("/health/live", "/health/live"),
    "health.ready_path": ("/health/ready", "/health/ready"),
    "health.startup_path": ("/health/startup", "/health/startup"),
    "health.checks": (
        {"next-tier": "http://127.0.0.1:7001/status", "DB": "shop.health:ping"},
        "next-tier=http://127.0.0.1:7001/status, DB = shop.health:ping",
    ),
    "health.forward_path": ("/status", "/status"),
    "health.forward_check": ("next-tier", "next-tier"),
    "health.failure_status": (404, "404"),
    "health.port": (9001, "9001"),
    "health.host": ("::1", "::1"),
    "health.stuck_after": (0.0, "0"),
    "health.expose_details": (True, "on"),
    "health.trusted": (("127.0.0.1/32", "fd00::/8"), "127.0.0.1,fd00::/8"),
    "health.unready_when_shedding": ((0.5, 20.0), "0.5, 20"),
    "runner.keep_alive_timeout": (75.0, "75"),
    "runner.headers_timeout": (10.0, "10.0"),
    "runner.protect": (False, "FALSE"),
    "runner.shutdown_timeout": (0.0, "0"),
    "runner.drain_delay": (5.5, "5.5"),
}

# Wrong values as Python objects and, where text can be wrong in the same way, as text.
Bad = tuple[Any, str | None]
INTEGER: list[Bad] = [("5", "five"), (1.5, "1.5"), (True, "true"), (None, "none"), ([1], "1,2")]
NUMBER: list[Bad] = [("5", "five"), (True, "true"), (None, "none"), ([1], "1,2"), (b"5", "")]
FINITE: list[Bad] = [(NAN, "nan"), (INF, "inf"), (-INF, "-inf")]
BOOLEAN: list[Bad] = [(1, "maybe"), (0, "2"), ("true", "tru"), (None, "none"), ([], "")]
LAW: list[Bad] = [(1, "1"), (None, "none"), ("AIMD", "AIMD"), ("", ""), (["aimd"], "aimd,aimd")]
PATH: list[Bad] = [(1, None), (None, None), (["/livez"], None), (b"/livez", None)]
LIST: list[Bad] = [("/static/", None), (1, None), (None, None), ({"/static/": 1}, None)]
HEADER: list[Bad] = [(1, None), (["X-A"], None), ("", ""), ("X A", "X A"), ("X:", "X:"), ("ü", "ü")]
UNROOTED: list[Bad] = [("livez", "livez"), ("", ""), ("http://host/", "http://host/")]
UNCLEAN: list[Bad] = [("/a?b", "/a?b"), ("/a#b", "/a#b"), ("/a b", "/a b"), ("/a\x00", None)]


def _integer(minimum: int) -> dict[str, list[Bad]]:
    low = minimum - 1
    return {
        "must be an integer": INTEGER,
        f"must be >= {minimum}": [(low, str(low)), (-(10**30), f"-{10**30}")],
        "must be <= 1000000000": [(10**9 + 1, "1000000001"), (10**6000, None)],
    }


def _or_none(rules: dict[str, list[Bad]]) -> dict[str, list[Bad]]:
    return {
        f"{rule} or None": [bad for bad in values if bad[0] is not None]
        for rule, values in rules.items()
    }


def _number(bound: str, low: list[Bad], high: str, above: float) -> dict[str, list[Bad]]:
    return {
        "must be a number": NUMBER,
        "must be a finite number": FINITE,
        f"must be {bound}": [(-1, "-1"), *low],
        f"must be <= {high}": [(above, repr(above)), (10**400, None)],
    }


SECONDS = _number(">= 0", [(-0.001, "-0.001")], "1000000", 1e6 + 1)
POSITIVE_SECONDS = _number("> 0", [(0, "0"), (0.0, "0.0")], "1000000", 1e6 + 1)
SHARE = _number("> 0", [(0, "0")], "1", 1.01)
PATHS: dict[str, list[Bad]] = {
    "must be a path": PATH,
    'must be a path that starts with "/"': UNROOTED,
    'must be a path without "?", "#" and white space': UNCLEAN,
}
PREFIXES: dict[str, list[Bad]] = {
    "must be a list of path prefixes": LIST,
    "must be a list of path prefixes, and each must be a path": [
        ((5,), None),
        (["/a", None], None),
    ],
    'must be a list of path prefixes, and each must be a path that starts with "/"': [
        (["static/"], "static/"),
        (("/a", ""), "/a,"),
    ],
    'must be a list of path prefixes, and each must be a path without "?", "#" and white space': [
        (["/a?b"], "/a?b")
    ],
}

NETWORK_RULE = 'must be an address, a network, "*" or "unix"'
NETWORKS: dict[str, list[Bad]] = {
    "must be a list of networks": [("10.0.0.0/8", None), (1, None), (None, None)],
    f"must be a list of networks, and each {NETWORK_RULE}": [
        (["10.0.0.0/99"], "10.0.0.0/99"),
        (["example.org"], "example.org"),
        ([5], None),
    ],
}

NAME_RULE = 'must be a name of letters, digits, "-", "_", "." and ":"'
KINDS_RULE = f"must be checks that begin with {', '.join(f'{kind}:' for kind in KINDS)}"
HEALTH: dict[str, dict[str, list[Bad]]] = {
    "health.checks": {
        "must be a mapping of names to checks": [("db", "db"), (1, None), (["db"], "a=b:c,db")],
        "must be a mapping of names to checks, callables or their texts": [({"db": 5}, None)],
        NAME_RULE: [({"a b": "tcp://h:1"}, "a b=tcp://h:1"), ({"": "tcp://h:1"}, "=tcp://h:1")],
        "must have distinct names, whatever their case": [
            ([("db", "tcp://h:1"), ("DB", "tcp://h:1")], "db=tcp://h:1,DB=tcp://h:2"),
            ([("db", "tcp://h:1"), ("db", "tcp://h:1")], "db=tcp://h:1,db=tcp://h:1"),
        ],
        f'{KINDS_RULE} or are "module:attribute"': [
            ({"db": "ftp://host/"}, "db=ftp://host/"),
            ({"db": "ping"}, "db=ping"),
            ({"db": ""}, "db="),
        ],
        "must be checks with a good URL after http:": [
            ({"db": "http:///status"}, "db=http:///status"),
            ({"db": "http://host:port/"}, "db=http://host:port/"),
            ({"db": "http:host"}, "db=http:host"),
            ({"db": "http://a b/"}, "db=http://a b/"),
        ],
        "must be checks with a good URL after tcp:": [({"db": "tcp://host"}, "db=tcp://host")],
    },
    "health.forward_path": _or_none(PATHS),
    "health.forward_check": {f"{NAME_RULE} or None": [("", ""), ("a b", "a b"), (5, None)]},
    "health.failure_status": {
        "must be an integer": INTEGER,
        "must be >= 400": [(200, "200")],
        "must be <= 599": [(600, "600")],
    },
    "health.port": {
        "must be an integer": INTEGER,
        "must be >= 0": [(-1, "-1")],
        "must be <= 65535": [(65536, "65536")],
    },
    "health.host": {"must be a host name or an address": [(1, None), ("", ""), ("a b", "a b")]},
    "health.stuck_after": SECONDS,
    "health.expose_details": {"must be true or false": BOOLEAN},
    "health.trusted": NETWORKS,
    "health.unready_when_shedding": {
        "must be a share, or a share and seconds or None": [((0.5, 1, 2), "0.5,1,2")],
        "must be a share, or a share and seconds, and its share must be <= 1 or None": [
            (1.5, "1.5"),
            ((2, 10), "2,10"),
        ],
        "must be a share, or a share and seconds, and its share must be > 0 or None": [(0, "0")],
        "must be a share, or a share and seconds, and its seconds must be >= 0.1 or None": [
            ((0.5, 0), "0.5,0")
        ],
        "must be a share, or a share and seconds, and its share must be a number or None": [
            ("half", "half")
        ],
    },
}

# By option: the rule in the message, and the values that break it.
BAD: dict[str, dict[str, list[Bad]]] = {
    "limit.max_concurrent_requests": _integer(0),
    "limit.exempt": PREFIXES,
    "backpressure.enabled": {"must be true or false": BOOLEAN},
    "backpressure.law": {'must be "adaptive" or "aimd"': LAW},
    "backpressure.initial_limit": _integer(1),
    "backpressure.min_limit": _integer(1),
    "backpressure.max_limit": _integer(1),
    "backpressure.elu_max": SHARE,
    "backpressure.sample_window": _number(">= 0.001", [(0, "0")], "1000000", 1e6 + 1),
    "backpressure.smoothing_factor": SHARE,
    "backpressure.queue_size": _integer(0),
    "backpressure.queue_timeout": SECONDS,
    "backpressure.exempt": PREFIXES,
    "backpressure.max_wait": POSITIVE_SECONDS,
    "backpressure.trusted_proxies": NETWORKS,
    "backpressure.priority": {"must be a header name or callable or None": HEADER},
    "backpressure.user": {"must be a callable or None": [(b"user", None), ({}, None)]},
    "backpressure.dry_run": {"must be true or false": BOOLEAN},
    "deadline.receive_timeout": SECONDS,
    "deadline.timeout": _or_none(POSITIVE_SECONDS),
    "deadline.header": {"must be a header name or None": HEADER},
    "health.live_path": PATHS,
    "health.ready_path": PATHS,
    "health.startup_path": PATHS,
    **HEALTH,
    "runner.keep_alive_timeout": POSITIVE_SECONDS,
    "runner.headers_timeout": POSITIVE_SECONDS,
    "runner.protect": {"must be true or false": BOOLEAN},
    "runner.shutdown_timeout": SECONDS,
    "runner.drain_delay": SECONDS,
}


def argument(dotted: str, value: Any) -> Config:
    """Write one option in Python."""
    section, name = dotted.split(".")
    parts: dict[str, Any] = {section: Config.sections()[section](**{name: value})}
    return Config(**parts)


def mapping(dotted: str, value: Any) -> Config:
    """Write one option in a settings dictionary."""
    section, name = dotted.split(".")
    return resolve(settings={section: {name: value}}, environ={}).config


def toml(dotted: str, value: Any, folder: Path) -> Config:
    """Write one option in a TOML file."""
    section, name = dotted.split(".")
    file = folder / "resilience.toml"
    file.write_text(f"[{section}]\n{name} = {_toml_literal(value)}\n", encoding="utf-8")
    return Config.from_toml(file)


def environment(dotted: str, text: str) -> Config:
    """Write one option in the environment."""
    return Config.from_env({OPTIONS[dotted].env: text})


def in_toml(value: Any) -> bool:
    """Tell whether TOML has a literal for the value."""
    return value is not None and not isinstance(value, (bytes, dict)) and not _has_none(value)


def every_bad(pick: Callable[[Any, str | None], bool]) -> Any:
    """Parametrize a test by option, rule, value and text, for each bad value that `pick` takes."""
    cases = [
        pytest.param(dotted, rule, value, text, id=f"{dotted}-{number}")
        for dotted, rules in BAD.items()
        for rule, values in rules.items()
        for number, (value, text) in enumerate(values)
        if pick(value, text)
    ]
    return pytest.mark.parametrize(("dotted", "rule", "value", "text"), cases)


def _has_none(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and None in value


def _toml_literal(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)} = {_toml_literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value) if value > 10**4000 else str(value)
    return "'none'" if value is None else json.dumps(value)
