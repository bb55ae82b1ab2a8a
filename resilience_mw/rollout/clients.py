"""Where a request comes from, behind proxies that we know."""

from __future__ import annotations

from ..core.exchange import Exchange
from ..signals.peers import canonical
from ..signals.proxies import TrustedProxies


class Clients:
    """Finds the address of a client.

    Args:
        proxies: whose `X-Forwarded-For` counts. If nobody's does, the address is what the server
            tells, which may have listened to proxies itself.
    """

    def __init__(self, proxies: TrustedProxies) -> None:
        self._proxies = proxies

    def trusted(self, exchange: Exchange) -> bool:
        """Return whether whoever is connected is one of the proxies.

        Where the socket is out of reach a server or middleware that believes everybody's
        `X-Forwarded-For` may have made any client look like one: an address that such a header
        names is nobody's.
        """
        return bool(self._proxies) and self._proxies.trusts(exchange.certain_peer)

    def address(self, exchange: Exchange) -> str | None:
        """Return the address nearest to the client that a proxy of ours vouches for."""
        if not self._proxies:
            return _canonical(exchange.client)
        address = exchange.peer
        if not self._proxies.trusts(address):
            return _canonical(address)
        # Each proxy adds who was connected to it: what the client may have made up is further left.
        for told in reversed((exchange.header("x-forwarded-for") or "").split(",")):
            hop = canonical(told)
            if hop is None:
                break
            address = hop
            if not self._proxies.trusts(hop):
                break
        return address


def _canonical(address: str | None) -> str | None:
    """Return the form in which every server knows an address, whatever its socket calls it."""
    return address if address is None or ":" not in address else canonical(address) or address
