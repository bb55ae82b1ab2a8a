"""Policies that write down what happens to them."""

from __future__ import annotations

from typing import Any

from resilience_mw.core import SKIP, Decision, Exchange, Policy, Reply

STOP = Reply(418, "stop", reason="limit")


class Refuse(Exception):
    """Raised by a policy that fails."""


class Step(Policy):
    """Does one thing when entered, and writes down each call of it.

    Args:
        trace: what to write to.
        name: what to write.
        does: ``pass``, ``skip``, ``stop``, ``raise``, or ``fail late``: raise at the exit.
    """

    def __init__(self, trace: list[tuple[str, str]], name: str, does: str = "pass") -> None:
        self.trace, self.name, self.does = trace, name, does
        self.times: list[float] = []

    def enter(self, exchange: Exchange) -> Decision:
        """Do it."""
        self.trace.append(("enter", self.name))
        if self.does == "raise":
            raise Refuse(self.name)
        if self.does == "skip":
            return SKIP
        return STOP if self.does == "stop" else None

    def exit(self, exchange: Exchange, now: float) -> None:
        """Note the end, and when it was."""
        self.trace.append(("exit", self.name))
        self.times += [exchange.arrived, now]
        if self.does == "fail late":
            raise Refuse(self.name)


class Fork(Policy):
    """Sends the request to another app."""

    reroutes = True

    def __init__(self, target: Any) -> None:
        self.target = target

    def enter(self, exchange: Exchange) -> Decision:
        """Choose it."""
        exchange.target = self.target
        return None


def expected(behaviours: list[str]) -> list[tuple[str, str]]:
    """Return what a row of steps named 0, 1, 2... has to write, the app included."""
    trace, entered = [], []
    for name, does in enumerate(behaviours):
        trace.append(("enter", str(name)))
        if does in ("stop", "raise"):
            break
        if does != "skip":
            entered.append(str(name))
    else:
        trace.append(("app", ""))
    return [*trace, *(("exit", name) for name in reversed(entered))]
