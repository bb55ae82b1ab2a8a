"""Any configuration survives the environment, flags, mappings, pickles and its own repr."""

from __future__ import annotations

import dataclasses
import pickle
import string
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resilience_mw.config import (
    Backpressure,
    Config,
    Deadline,
    Health,
    Limit,
    Runner,
    options_of,
    resolve,
)

counts = st.integers(min_value=0, max_value=10**9)
seconds = st.floats(min_value=0, max_value=1e6)
positive = st.floats(min_value=0, max_value=1e6, exclude_min=True)
share = st.floats(min_value=0, max_value=1, exclude_min=True)
# Commas separate in text; everything else that a path may hold comes back.
segments = st.text(
    st.characters(exclude_characters="?#,", exclude_categories=["C", "Z"]), max_size=12
)
paths = segments.map(lambda text: f"/{text}")
texts = st.sampled_from(["http://h/status", "tcp://h:1", "shop.health:ping", "memory:"])
headers = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=20).filter(
    lambda name: name.lower() not in ("none", "off")
)


@st.composite
def some(draw: st.DrawFn, options: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """Draw values for some of the options, in any choice."""
    return {name: draw(values) for name, values in options.items() if draw(st.booleans())}


@st.composite
def backpressures(draw: st.DrawFn) -> Backpressure:
    """Draw limits in order, and the other options freely."""
    low, start, high = sorted(draw(st.tuples(*[st.integers(1, 10**9)] * 3)))
    limits = draw(
        st.sampled_from(
            [
                {},
                {"max_limit": high},
                {"max_limit": high, "initial_limit": start},
                {"min_limit": low, "initial_limit": start, "max_limit": high},
            ]
        )
    )
    others = draw(
        some(
            {
                "enabled": st.booleans(),
                "law": st.sampled_from(["adaptive", "aimd"]),
                "elu_max": share,
                "sample_window": st.floats(0.001, 1e6),
                "smoothing_factor": share,
                "queue_size": counts,
                "queue_timeout": seconds,
                "exempt": st.lists(paths, max_size=3),
                "max_wait": positive,
                "priority": st.none() | headers,
                "dry_run": st.booleans(),
            }
        )
    )
    return Backpressure(**limits, **others)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Draw any valid configuration."""
    live, ready, startup = draw(st.lists(paths, min_size=3, max_size=3, unique=True))
    chosen: list[dict[str, Any]] = [
        {},
        {"live_path": live, "ready_path": ready, "startup_path": startup},
    ]
    probes = draw(st.sampled_from(chosen))
    checks = draw(
        some(
            {
                "checks": st.dictionaries(st.sampled_from("abc"), texts, max_size=3),
                "forward_path": st.none() | st.just("/status"),
                "forward_check": st.none() | st.sampled_from("abc"),
                "failure_status": st.integers(400, 599),
                "port": st.integers(0, 65535),
                "host": st.sampled_from(["127.0.0.1", "::", "localhost"]),
                "stuck_after": seconds,
                "expose_details": st.booleans(),
                "trusted": st.lists(st.sampled_from(["10.0.0.0/8", "*", "unix"]), max_size=2),
                "unready_when_shedding": st.none() | share | st.tuples(share, st.floats(1, 1e6)),
            }
        )
    )
    return Config(
        limit=Limit(
            **draw(some({"max_concurrent_requests": counts, "exempt": st.lists(paths, max_size=3)}))
        ),
        backpressure=draw(backpressures()),
        deadline=Deadline(
            **draw(
                some(
                    {
                        "receive_timeout": seconds,
                        "timeout": st.none() | positive,
                        "header": st.none() | headers,
                    }
                )
            )
        ),
        health=Health(**probes, **checks),
        runner=Runner(
            **draw(
                some(
                    {
                        "keep_alive_timeout": positive,
                        "headers_timeout": positive,
                        "protect": st.booleans(),
                        "shutdown_timeout": seconds,
                        "drain_delay": seconds | st.integers(0, 10**6),
                    }
                )
            )
        ),
    )


# Two shared cores: how long an example takes says nothing here.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(configs())
def test_any_configuration_survives_every_way(config: Config):
    """Values and what was given come back the same, whichever way they went."""
    environ = config.to_env()
    by_variable = {o.env: o.dotted for s in config.parts() for o in options_of(type(s)).values()}
    flags = {by_variable[variable]: text for variable, text in environ.items()}
    for copy in (
        Config.from_env(environ),
        resolve(environ=environ).config,
        resolve(flags=flags, environ={}).config,
        resolve(config, environ={}).config,
        pickle.loads(pickle.dumps(config)),
        dataclasses.replace(config),
        eval(repr(config)),
    ):
        assert copy == config
        assert copy.given == config.given
    assert Config.from_mapping(dataclasses.asdict(config)) == config
