"""One GIL and the threads that compute under it, in turns of five milliseconds.

Turns, not an even share: a burst of work shorter than a turn is not interrupted, so that threads
which started together come apart, as real ones do.
"""

from __future__ import annotations

from collections import deque

from .request import Callback, Request

INTERVAL = 0.005
"""Seconds a thread may keep the GIL while others want it (``sys.getswitchinterval``)."""

_NOTHING = 1e-12


class Job:
    """Some computing of one request, and what follows it."""

    __slots__ = ("call", "left", "request")

    def __init__(self, seconds: float, call: Callback, request: Request) -> None:
        self.left = seconds
        self.call = call
        self.request = request


class Gil:
    """The threads that want to compute; the first of them does."""

    def __init__(self) -> None:
        self.jobs: deque[Job] = deque()
        self._turn = INTERVAL

    def add(self, seconds: float, call: Callback, request: Request) -> None:
        """Have ``call(request)`` follow ``seconds`` of computing."""
        self.jobs.append(Job(seconds, call, request))

    def run(self, now: float, until: float) -> tuple[float, Job | None]:
        """Compute until then, or until a job is done; return when that was, and the job."""
        jobs = self.jobs
        while jobs:
            job = jobs[0]
            alone = len(jobs) == 1
            span = job.left if alone else min(job.left, self._turn)
            if now + span > until:
                job.left -= until - now
                if not alone:
                    self._turn -= until - now
                return until, None
            now += span
            job.left -= span
            self._turn = INTERVAL
            if job.left <= _NOTHING:
                jobs.popleft()
                return now, job
            jobs.rotate(-1)
        return until, None
