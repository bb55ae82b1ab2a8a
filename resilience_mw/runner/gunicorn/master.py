"""The stop as the master conducts it.

It tells its workers that the stop has begun, goes on supervising them for the drain delay, and
only then does what Gunicorn does at SIGTERM. So a reload or `max_requests`, which end workers too,
never turn readiness.
"""

from __future__ import annotations

import signal
import time
from typing import Any

from gunicorn.errors import HaltServer

from ..crashes import EXIT_CODE, MESSAGE, CrashLoop
from ..drain import Progress, timeouts
from .resolving import InForce
from .shared import SERVING, STARTING, Shared


class Master:
    """Stands in for some methods of one arbiter.

    Args:
        server: the arbiter.
        force: what is in force; replaced at every reload.
    """

    def __init__(self, server: Any, force: InForce) -> None:
        self.server = server
        self.force = force
        self.shared = Shared()
        self.progress = Progress("gunicorn master")
        self._stop_at: float | None = None
        self._stopping = False
        self._killed = False
        self._halting = False
        self._started: dict[int, float] = {}
        self._crashes = CrashLoop()
        # What Gunicorn looks up on the arbiter at each use, so that no class has to be replaced.
        self._handle_term = server.handle_term
        self._wait_for_signals = server.wait_for_signals
        self._kill_workers = server.kill_workers
        self._reap_workers = server.reap_workers
        server.reap_workers = self.reap_workers
        server.handle_term = self.handle_term
        server.wait_for_signals = self.wait_for_signals
        server.kill_workers = self.kill_workers

    def reap_workers(self) -> None:
        """Take note of workers that have ended; the first that could not start ends everything.

        Gunicorn says so again for the next one, while it is ending because of the first, and then
        dies of its own exception.
        """
        try:
            self._reap_workers()
        except HaltServer:
            if self._halting:
                return
            self._halting = True
            raise

    def handle_term(self) -> None:
        """Begin the stop at the first SIGTERM; at the second, end at once."""
        if self._stop_at is not None:
            self.progress.say("twice", "second signal, stopping at once")
            self.server.handle_quit()
        delay = self.force.config.runner.drain_delay
        if self._two_masters or not delay or not self.shared.any_served():
            self._stop()
        self._stop_at = time.monotonic() + delay
        self.shared.drain()
        self.progress.say("delay", f"not ready, still accepting for {delay:g} s")

    @property
    def _two_masters(self) -> bool:
        """Whether, after SIGUSR2, another master serves the same sockets.

        Not ready would be said of both then, and a socket shut down be shut for both.
        """
        return bool(self.server.reexec_pid or self.server.master_pid)

    def wait_for_signals(self, timeout: float = 1.0) -> list[int]:
        """Wait as the arbiter does, and no longer than until the drain delay has passed."""
        if self._stop_at is not None:
            timeout = max(0.0, min(timeout, self._stop_at - time.monotonic()))
        signals: list[int] = self._wait_for_signals(timeout)
        if self._stop_at is not None and not signals and time.monotonic() >= self._stop_at:
            self._stop()
        return signals

    def _stop(self) -> None:
        """Do what Gunicorn does at SIGTERM, which raises out of its loop."""
        self._stopping = True
        self.shared.stop(alone=not (self._two_masters or self.server.systemd))
        limit = self.force.drain
        self.progress.say("stop", f"no longer accepting, requests in flight have {limit:g} s")
        # From here on Gunicorn looks only for the signals that mean "at once".
        signal.signal(signal.SIGTERM, lambda *_: self.server.SIG_QUEUE.put_nowait(signal.SIGQUIT))
        self._handle_term()

    def kill_workers(self, number: int) -> None:
        """Pass a signal on to all workers, and note whom SIGKILL still finds."""
        if number == signal.SIGKILL and self.server.WORKERS:
            self._killed = True
            pids = ", ".join(map(str, sorted(self.server.WORKERS)))
            self.progress.say("killed", f"still running at the end, killed: {pids}", level=40)
        self._stopping = self._stopping or number in (signal.SIGQUIT, signal.SIGKILL)
        self._kill_workers(number)

    def when_ready(self, server: Any) -> None:
        """Log the times in force."""
        self.progress.say("times", timeouts(self.force.config.runner))
        for name, value in self.force.theirs.items():
            self.progress.say(name, f"{name} = {value:g} s as set for Gunicorn")

    def pre_fork(self, server: Any, worker: Any) -> None:
        """Note that a worker is about to start."""
        self.shared.note(worker.age, STARTING)
        self._started[worker.age] = time.monotonic()

    def child_exit(self, server: Any, worker: Any) -> None:
        """Stop when workers do nothing but die.

        Raises:
            HaltServer: this was the last of too many.
        """
        lived = time.monotonic() - self._started.pop(worker.age, 0.0)
        orderly = self.shared.state(worker.age) > SERVING or server.cfg.reload
        if self._stopping or orderly:
            return
        if self._crashes.died(lived):
            self._stopping = True
            raise HaltServer(f"{MESSAGE}: see above for why, or for which signal.", EXIT_CODE)

    def on_exit(self, server: Any) -> None:
        """Turn the exit code into 1 if requests were cut off."""
        forced = self._killed or self.shared.any_forced()
        if forced:
            raise SystemExit(1)
