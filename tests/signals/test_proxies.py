"""Whose headers we believe."""

from __future__ import annotations

import pytest

from resilience_mw.signals import proxies
from resilience_mw.signals.proxies import TrustedProxies


@pytest.mark.parametrize(
    ("networks", "address", "trusted"),
    [
        (["10.0.0.0/8"], "10.1.2.3", True),
        (["10.0.0.0/8"], "11.1.2.3", False),
        (["10.1.2.3/8"], "10.200.0.1", True),
        (["127.0.0.1"], "127.0.0.1", True),
        (["127.0.0.1"], "127.0.0.2", False),
        (["fd00::/8"], "fd12::1", True),
        (["fd00::/8"], "10.0.0.1", False),
        (["10.0.0.0/8"], "::ffff:10.1.2.3", True),
        (["fe80::/10"], "fe80::1%eth0", True),
        (["10.0.0.0/8", "192.168.0.0/16"], "192.168.7.7", True),
        (["*"], "8.8.8.8", True),
        (["*"], "no address", True),
        (["*"], None, True),
        (["unix"], None, True),
        (["unix"], "", True),
        (["unix"], "127.0.0.1", False),
        (["10.0.0.0/8"], None, False),
        (["10.0.0.0/8"], "testclient", False),
        ([], "127.0.0.1", False),
    ],
)
def test_who_is_trusted(networks, address, trusted):
    """Addresses are matched as addresses; a peer without one only if Unix sockets are named."""
    trust = TrustedProxies(networks)
    assert trust.trusts(address) is trusted
    assert trust.trusts(address) is trusted, "the cached answer is the same"


@pytest.mark.parametrize(
    ("networks", "anybody"), [([], False), (["*"], True), (["unix"], True), (["::1"], True)]
)
def test_no_networks_is_nobody(networks, anybody):
    """An empty list is false, so that callers can skip the header altogether."""
    assert bool(TrustedProxies(networks)) is anybody


@pytest.mark.parametrize("name", ["10.0.0.0/99", "proxy.example", "", "10.0.0.1:80"])
def test_a_wrong_network_names_the_option(name):
    """One line: the option, the rule and the value."""
    with pytest.raises(
        ValueError, match=r"^backpressure\.trusted_proxies must be .*, got '"
    ) as info:
        TrustedProxies(["127.0.0.1", name])
    assert repr(name) in str(info.value)


def test_the_cache_is_bounded():
    """A client that comes from ever new addresses does not fill memory."""
    trust = TrustedProxies(["10.0.0.0/8"])
    for number in range(3000):
        assert trust.trusts(f"10.0.{number // 256}.{number % 256}")
    assert len(trust._answers) <= proxies._MAX_CACHED
