"""Which peers may tell us something about a request."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

_MAX_CACHED = 1024


class TrustedProxies:
    """The networks whose `X-Request-Start` we believe.

    Args:
        networks: addresses or networks (``10.0.0.0/8``, ``fd00::/8``, ``127.0.0.1``), ``*`` for
            everybody, or ``unix`` for peers without an address (Unix sockets).

    Raises:
        ValueError: one of them is none of these.
    """

    __slots__ = ("_answers", "_everybody", "_networks", "_unix")

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._everybody = "*" in networks
        self._unix = self._everybody or "unix" in networks
        self._networks = [_network(name) for name in networks if name not in ("*", "unix")]
        self._answers: dict[str, bool] = {}

    def __bool__(self) -> bool:
        return self._unix or bool(self._networks)

    def trusts(self, address: str | None) -> bool:
        """Return whether the peer at `address` is one of ours; a malformed address is not."""
        if not address:
            return self._unix
        if self._everybody:
            return True
        answer = self._answers.get(address)
        if answer is None:
            if len(self._answers) >= _MAX_CACHED:
                # Clients choose their addresses; a full cache starts anew rather than grow.
                self._answers.clear()
            answer = self._answers[address] = self._contains(address)
        return answer

    def _contains(self, address: str) -> bool:
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(peer, ipaddress.IPv6Address) and peer.ipv4_mapped is not None:
            # What a dual-stack socket calls an IPv4 peer.
            peer = peer.ipv4_mapped
        return any(peer in network for network in self._networks)


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:
        raise ValueError(
            f"backpressure.trusted_proxies must be addresses, networks, '*' or 'unix', got {name!r}"
        ) from None
