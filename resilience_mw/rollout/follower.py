"""Keeps a process at the shares that the store has, however the store is doing."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..core.rollout import Share
from .stores.base import RuleHeld, Store, StoreError, checked_percent, checked_rule
from .words import differences, in_force, reason, shown

logger = logging.getLogger("resilience_mw.rollout")

JITTER = 0.1
"""Share of the interval by which a look may be early: many processes must not ask in step."""

ANNOUNCE_AGAIN = 5.0
"""Seconds after which a store that could not take in the rules is given them again."""

Apply = Callable[[Mapping[str, Share]], None]


@dataclass(frozen=True, slots=True)
class _Pending:
    """A change that is in force here and still has to reach the store."""

    share: Share
    who: str
    why: str


class Follower:
    """Looks at a store in a daemon thread, and hands each new state to the process.

    No request waits for it. While the store is away, the last known shares stand; the log has one
    line when it goes and one when it is back. A forked child follows with a thread of its own.
    Dropping the last reference ends it, as :meth:`close` does.

    Args:
        store: where the shares live.
        apply: called in the follower's thread with all shares of the store, once at the first
            look and then whenever one has changed. It should replace one reference, no more.
        rules: the shares as they are in the code. The store takes in those that it does not have,
            so that all processes agree on them, the command line shows them, and a roll-back of
            everything finds them. A store that comes back empty gets the last known ones.
        serving: whether the process serves. One that only imports the app, or exports from it,
            reads the store and writes nothing until :meth:`serve`.
    """

    def __init__(
        self,
        store: Store,
        apply: Apply,
        *,
        rules: Mapping[str, Share] | None = None,
        serving: bool = True,
    ) -> None:
        self.store = store
        self._apply = apply
        self._rules = dict(rules or {})
        self._serving = serving
        self._introduced = not self._rules
        self._stored: Mapping[str, Share] = MappingProxyType({})
        self._applied: Mapping[str, Share] | None = None
        self._pending: dict[str, _Pending] = {}
        self._away_since: float | None = None
        self._said = False
        self._loaded = False
        self._announce_at = 0.0
        self._closed = False
        self._renew()
        _followers.add(self)

    def _renew(self) -> None:
        # In a forked child the old ones may be held for ever by threads that it does not have.
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._wake = threading.Event()
        self._looked = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def shares(self) -> Mapping[str, Share]:
        """The last known shares, with what still has to reach the store; empty at first."""
        return MappingProxyType({} if self._applied is None else dict(self._applied))

    @property
    def connected(self) -> bool:
        """Whether the last look found the store."""
        return self._loaded and self._away_since is None

    def start(self, wait: float = 0.0) -> None:
        """Begin to follow; more than once is the same as once.

        Args:
            wait: seconds to wait at most for the first look to end, well or not. At the start of
                a server it keeps the first requests from the shares in the code.
        """
        with self._lock:
            if self._closed or self._thread is not None:
                return
            self._thread = threading.Thread(
                target=_follow,
                args=(weakref.ref(self), self._wake, self._looked),
                name="resilience_mw.rollout",
                daemon=True,
            )
            self._thread.start()
        if wait > 0:
            self._looked.wait(wait)

    def serve(self) -> None:
        """Tell the store the rules from now on, because the process serves. Returns at once."""
        if not self._serving:
            self._serving = True
            self._wake.set()

    def close(self, timeout: float = 1.0) -> None:
        """Stop following. A change that has not reached the store is tried once more.

        Args:
            timeout: seconds to wait at most for the thread.
        """
        self._closed = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def submit(
        self,
        rule: str,
        percent: float = 0.0,
        *,
        held: bool = True,
        who: str = "guard",
        why: str = "",
    ) -> None:
        """Set a share here within moments and in the store as soon as it can be reached.

        Returns at once, may be called from an event loop, and needs no store: until the store has
        it, this process keeps to it whatever the store says.

        Raises:
            ConfigError: the rule's name or the percent breaks its rule.
        """
        share = Share(0.0 if held else checked_percent(percent), held)
        change = _Pending(share, who, why)
        checked_rule(rule)
        with self._lock:
            self._pending[rule] = change
            self._said = False
        self._wake.set()

    def look(self) -> None:
        """Look once, now, in this thread: store what is pending, read, and apply what is new.

        Never raises: a store that fails is away.
        """
        with self._looking:
            # Before the store is asked, which may take its whole timeout.
            self._show()
            try:
                self._save()
                shares = self.store.load()
            except Exception as error:
                self._lost(error)
                if self._loaded and isinstance(error, StoreError):
                    self._stored = MappingProxyType({**self._stored, **error.readable})
            else:
                self._found()
                self._take_in(shares)
            self._show()
            if self._serving and self._loaded and not self._introduced:
                self._introduced = True
                logger.info("%s", in_force(self._rules, self._stored, self.store.name))

    def _save(self) -> None:
        with self._lock:
            pending = dict(self._pending)
        for rule, change in pending.items():
            share = change.share
            held = True if share.held else None
            try:
                self.store.change(rule, share.percent, held=held, who=change.who, why=change.why)
            except RuleHeld:
                pass
            except Exception as error:
                if not self._said:
                    self._said = True
                    logger.warning(
                        "rollout rule %s: %s in this process alone: %s",
                        rule,
                        shown(share),
                        reason(self.store, error),
                    )
                continue
            with self._lock:
                if self._pending.get(rule) is change:
                    del self._pending[rule]

    def _take_in(self, shares: Mapping[str, Share]) -> None:
        """Keep what the store has, and have it take in those of our rules that it has not."""
        missing = {
            rule: self._stored.get(rule, share)
            for rule, share in self._rules.items()
            if rule not in shares
        }
        kept = {rule: share for rule, share in missing.items() if rule in self._stored}
        if missing and self._serving and time.monotonic() >= self._announce_at:
            why = "the store had lost it" if kept else "as in the code"
            try:
                self.store.announce(missing, who="server", why=why)
                shares = self.store.load()
            except Exception as error:
                if not self._announce_at:
                    logger.warning("rollout rules not in the store: %s", reason(self.store, error))
                self._announce_at = time.monotonic() + ANNOUNCE_AGAIN
            else:
                self._announce_at = 0.0
        self._loaded = True
        self._stored = MappingProxyType({**kept, **shares})

    def _show(self) -> None:
        """Apply what is stored, under what is pending, if that is anything new."""
        with self._lock:
            shares = {**self._stored, **{rule: c.share for rule, c in self._pending.items()}}
            known = self._loaded or bool(self._pending)
        if not known or shares == self._applied:
            return
        before, self._applied = self._applied, shares
        if before is not None:
            for line in differences(self._rules, before, shares):
                logger.info("%s", line)
        try:
            self._apply(MappingProxyType(shares))
        except Exception:
            logger.exception("rollout shares could not be applied")

    def _lost(self, error: Exception) -> None:
        if self._away_since is None:
            self._away_since = time.monotonic()
            stands = "the last known shares stand" if self._loaded else "no share is known yet"
            logger.warning("rollout store is away, %s: %s", stands, reason(self.store, error))

    def _found(self) -> None:
        if self._away_since is not None:
            seconds = time.monotonic() - self._away_since
            self._away_since = None
            logger.warning("rollout store %s is back after %.1f s", self.store.name, seconds)

    def _after_fork(self) -> None:
        followed = self._thread is not None
        self._renew()
        self.store.after_fork()
        if followed:
            self.start()


def _follow(
    reference: weakref.ref[Follower], wake: threading.Event, looked: threading.Event
) -> None:
    """The thread: look until the follower is closed or nobody has it any more."""
    while True:
        follower = reference()
        if follower is None:
            return
        wake.clear()
        closed = follower._closed
        if not closed or follower._pending:
            follower.look()
        looked.set()
        if closed:
            with contextlib.suppress(Exception):
                follower.store.close()
            return
        pause = follower.store.interval * (1 - JITTER * random.random())
        # Held across the pause it would never be dropped.
        del follower
        wake.wait(pause)


_followers: weakref.WeakSet[Follower] = weakref.WeakSet()


def _after_fork() -> None:
    for follower in list(_followers):
        follower._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
