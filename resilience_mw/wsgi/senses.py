"""Let the policies of a guard sense the threads they run in, and the wait for a thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ..core.adaptive import AdaptiveGate
from ..core.laws import Senses
from ..signals.proxies import TrustedProxies
from ..signals.threads import ThreadMeter, pool_size
from ..signals.waited import WaitedWSGI, choose_wsgi
from ..types import Environ


class ThreadSenses:
    """Measures threads and process CPU while there is a gate that needs it.

    The guard calls `enter` and `exit` under its lock.

    Args:
        gates: those of the guard.
    """

    def __init__(self, gates: Sequence[AdaptiveGate]) -> None:
        networks = [network for gate in gates for network in gate.trusted_proxies]
        self._proxies = TrustedProxies(networks)
        self._meter = ThreadMeter() if gates else None
        self._waited: WaitedWSGI | None = None
        for gate in gates:
            gate.listen(self._sense)

    def queue_wait(self, environ: Environ, now: float) -> float:
        """Return for how many seconds the request waited for the thread it has now."""
        waited = self._waited
        if waited is None:
            waited = self._waited = choose_wsgi(environ, proxies=self._proxies)
            if self._meter is not None:
                self._meter.pool_size = pool_size(environ)
        return waited(environ, now)

    def enter(self, now: float) -> None:
        """Count the calling thread as busy."""
        if self._meter is not None:
            self._meter.enter(now, threading.get_ident())

    def exit(self, now: float) -> None:
        """Count one thread less as busy."""
        if self._meter is not None:
            self._meter.exit(now)

    def sources(self) -> dict[str, str]:
        """Return what each signal is measured with, as far as it has been chosen."""
        chosen = {} if self._meter is None else {"utilization": "threads"}
        if self._waited is not None:
            chosen["waited"] = self._waited.source
        return chosen

    def _sense(self, now: float) -> Senses:
        busy = self._meter.worked(now) if self._meter is not None else 0.0
        return Senses(now, busy, 0)
