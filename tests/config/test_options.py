"""The option objects: defaults, what was given, derived defaults, copies."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any, Literal, assert_type

import pytest

from resilience_mw.config import Backpressure, Config, Deadline, Health, Limit, Runner, options_of
from resilience_mw.config.health_rules import NOTHING
from tests.config.spellings import GOOD, OPTIONS, argument

# Design table of the options, by hand: what `Config()` must hold.
DEFAULTS: dict[str, Any] = {
    "limit.max_concurrent_requests": 0,
    "limit.exempt": (),
    "backpressure.enabled": True,
    "backpressure.law": "adaptive",
    "backpressure.initial_limit": 1000,
    "backpressure.min_limit": 1,
    "backpressure.max_limit": 1000,
    "backpressure.elu_max": 0.95,
    "backpressure.sample_window": 0.1,
    "backpressure.smoothing_factor": 0.2,
    "backpressure.queue_size": 100,
    "backpressure.queue_timeout": 5.0,
    "backpressure.exempt": (),
    "backpressure.max_wait": 0.1,
    "backpressure.trusted_proxies": (),
    "backpressure.priority": None,
    "backpressure.user": None,
    "backpressure.dry_run": False,
    "deadline.receive_timeout": 30.0,
    "deadline.timeout": 30.0,
    "deadline.header": None,
    "health.live_path": "/livez",
    "health.ready_path": "/readyz",
    "health.startup_path": "/startupz",
    "health.checks": NOTHING,
    "health.forward_path": None,
    "health.forward_check": None,
    "health.failure_status": 503,
    "health.port": 0,
    "health.host": "0.0.0.0",
    "health.stuck_after": 30.0,
    "health.expose_details": False,
    "health.trusted": (),
    "health.unready_when_shedding": None,
    "runner.keep_alive_timeout": 65.0,
    "runner.headers_timeout": 66.0,
    "runner.protect": True,
    "runner.shutdown_timeout": 25.0,
    "runner.drain_delay": 3.0,
}

NODE_NAMES = {
    "limit.max_concurrent_requests": "maxConcurrentRequests",
    "backpressure.enabled": "enabled",
    "backpressure.initial_limit": "initialLimit",
    "backpressure.min_limit": "minLimit",
    "backpressure.max_limit": "maxLimit",
    "backpressure.elu_max": "eluMax",
    "backpressure.sample_window": "sampleWindow",
    "backpressure.smoothing_factor": "smoothingFactor",
    "backpressure.queue_size": "queueSize",
    "backpressure.queue_timeout": "queueTimeout",
    "deadline.receive_timeout": "requestTimeout",
    "runner.keep_alive_timeout": "keepAliveTimeout",
    "runner.headers_timeout": "headersTimeout",
    "runner.shutdown_timeout": "shutdownTimeout",
}


def value_of(config: Config, dotted: str) -> Any:
    section, name = dotted.split(".")
    return getattr(getattr(config, section), name)


def test_defaults_are_those_of_the_design():
    """Every option is in the table, with its value and the type of its value."""
    assert OPTIONS.keys() == DEFAULTS.keys()
    for dotted, default in DEFAULTS.items():
        value = value_of(Config(), dotted)
        assert (value, type(value)) == (default, type(default)), dotted


def test_node_names_are_those_of_the_design():
    """Each option says which option of the Node system it re-creates."""
    assert {d: option.node for d, option in OPTIONS.items() if option.node} == NODE_NAMES


def test_a_section_alone_has_the_same_defaults():
    """`Config()` is made of the sections' own defaults."""
    whole = Config(
        limit=Limit(),
        backpressure=Backpressure(),
        deadline=Deadline(),
        health=Health(),
        runner=Runner(),
    )
    assert whole == Config()


def test_static_types():
    """The classes are plain dataclasses to a type checker: attributes have their own types."""
    config = Config(limit=Limit(max_concurrent_requests=5), backpressure=Backpressure(law="aimd"))
    assert_type(config.limit, Limit)
    assert_type(config.limit.max_concurrent_requests, int)
    assert_type(config.backpressure.law, Literal["adaptive", "aimd"])
    assert_type(config.deadline.timeout, float | None)
    assert_type(Config.from_env({}), Config)
    assert config.limit.max_concurrent_requests == 5


def test_numbers_are_normalised():
    """Seconds are floats even if given as integers, lists become tuples."""
    assert type(Deadline(timeout=10).timeout) is float
    assert type(Runner(drain_delay=True + 1).drain_delay) is float
    exempt: Any = ["/a", "/b"]
    assert Limit(exempt=exempt).exempt == ("/a", "/b")


def test_derived_defaults():
    """initial_limit follows max_limit and sample_window follows the law, unless given."""
    assert Backpressure(max_limit=50).initial_limit == 50
    assert Backpressure(max_limit=50, initial_limit=20).initial_limit == 20
    assert Backpressure(law="aimd").sample_window == 1.0
    assert Backpressure(law="aimd", sample_window=0.1).sample_window == 0.1


def test_given_counts_an_argument_equal_to_the_default():
    """Only what was left out is not given."""
    assert Limit(max_concurrent_requests=0).given == {"max_concurrent_requests"}
    assert Limit().given == frozenset()
    config = Config(limit=Limit(exempt=()), runner=Runner(drain_delay=3))
    assert config.given == {"limit.exempt", "runner.drain_delay"}
    assert Backpressure(max_limit=5).given == {"max_limit"}


def test_equality_is_of_values():
    """Two configurations that act alike are equal, and hash alike."""
    explicit = Config(limit=Limit(max_concurrent_requests=0))
    assert explicit == Config()
    assert hash(explicit) == hash(Config())
    assert Config(limit=Limit(max_concurrent_requests=1)) != Config()
    other: object = Health()
    assert Limit() != other


def test_repr_shows_what_was_given():
    """A repr is short, and evaluates to an equal object."""
    assert repr(Config()) == "Config()"
    config = Config(limit=Limit(exempt=("/a",)), backpressure=Backpressure(max_limit=9, law="aimd"))
    assert repr(config) == (
        "Config(limit=Limit(exempt=('/a',)), backpressure=Backpressure(law='aimd', max_limit=9))"
    )
    assert eval(repr(config)) == config


def test_replace_keeps_what_was_left_out_left_out():
    """A derived default is derived anew, and nothing turns into given that was not."""
    section = dataclasses.replace(Backpressure(max_limit=50), max_limit=10)
    assert section.initial_limit == 10
    assert section.given == {"max_limit"}
    section = dataclasses.replace(section, law="aimd", initial_limit=5)
    assert (section.initial_limit, section.sample_window) == (5, 1.0)
    assert section.given == {"max_limit", "law", "initial_limit"}
    assert dataclasses.replace(section).given == section.given


def test_replace_on_a_config():
    """Sections that stay keep what was given to them."""
    before = Config(limit=Limit(max_concurrent_requests=5))
    after = dataclasses.replace(before, health=Health(live_path="/live"))
    assert after.given == {"limit.max_concurrent_requests", "health.live_path"}
    assert after.limit is before.limit


@pytest.mark.parametrize(
    "clone",
    [copy.copy, copy.deepcopy]
    + [lambda o, p=p: pickle.loads(pickle.dumps(o, p)) for p in range(pickle.HIGHEST_PROTOCOL + 1)],
)
@pytest.mark.parametrize("dotted", GOOD)
def test_copies_and_pickles(dotted: str, clone: Any):
    """A copy is equal, and remembers what was given."""
    config = argument(dotted, GOOD[dotted][0])
    cloned = clone(config)
    assert cloned == config
    assert cloned.given == config.given
    assert repr(cloned) == repr(config)


def test_signatures_show_the_options_only():
    """Help and editors see the options with their defaults, and nothing of how they are kept."""
    for section in Config.sections().values():
        parameters = inspect.signature(section).parameters
        assert list(parameters) == [field.name for field in dataclasses.fields(section)]
        assert list(parameters) == list(options_of(section))
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    assert inspect.signature(Limit).parameters["max_concurrent_requests"].default == 0


def test_asdict_gives_plain_values_that_from_mapping_takes():
    """A configuration survives the way through nested dictionaries."""
    config = Config(limit=Limit(exempt=("/a",)), deadline=Deadline(timeout=None))
    assert Config.from_mapping(dataclasses.asdict(config)) == config


def test_every_option_is_documented():
    """Each has a help text of one sentence or more, and each section a docstring."""
    for option in OPTIONS.values():
        assert option.help.endswith("."), option.dotted
        assert option.help[0].isupper(), option.dotted
    assert all(section.__doc__ for section in Config.sections().values())
