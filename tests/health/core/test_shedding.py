"""Readiness that depends on how much is refused."""

from __future__ import annotations

import pytest

from resilience_mw.core.shedding import LEAST, PARTS, Shedding


class Traffic:
    """Adds requests up, and shows them to a rule."""

    def __init__(self, share: float = 0.5, seconds: float = 10.0) -> None:
        self.rule = Shedding(share, seconds)
        self.now = 1000.0
        self.admitted = self.refused = 0
        self.states = [self.rule.sample(self.now, 0, 0)]

    def go(self, samples: int, admitted: int, refused: int) -> list[bool]:
        """Let so many of each come before each of so many samples."""
        states = []
        for _ in range(samples):
            self.now += self.rule.pause
            self.admitted += admitted
            self.refused += refused
            states.append(self.rule.sample(self.now, self.admitted, self.refused))
        return states


def test_nothing_refused_is_never_shedding():
    """However much comes."""
    assert not any(Traffic().go(100, 1000, 0))


def test_the_share_decides():
    """Just below it is not enough, and the share itself is."""
    assert not any(Traffic().go(50, 51, 49))
    assert Traffic().go(50, 50, 50)[-1]


def test_few_requests_say_nothing():
    """Two of three refused is no overload."""
    traffic = Traffic()
    assert not any(traffic.go(LEAST - 1, 0, 1))
    assert any(traffic.go(PARTS, 0, LEAST))


def test_it_is_over_at_half_the_share():
    """Not as soon as it falls below the share: it would flap."""
    traffic = Traffic()
    assert traffic.go(20, 20, 80)[-1]
    assert all(traffic.go(50, 70, 30))
    assert not traffic.go(20, 80, 20)[-1]
    assert not any(traffic.go(50, 70, 30))


def test_without_traffic_it_is_over_after_the_window():
    """Whoever is sent nothing refuses nothing."""
    traffic = Traffic()
    assert traffic.go(20, 0, 100)[-1]
    states = traffic.go(2 * PARTS, 0, 0)
    assert states[0]
    assert not any(states[PARTS:])


@pytest.mark.parametrize("seconds", [1.0, 10.0, 60.0])
def test_the_window_is_as_long_as_it_says(seconds: float):
    """What was refused before it is forgotten."""
    traffic = Traffic(0.1, seconds)
    traffic.go(3 * PARTS, 0, 100)
    assert not traffic.go(PARTS + 1, 1000, 0)[-1]
    assert len(traffic.rule._samples) <= PARTS + 2


def test_a_late_sample_is_no_harm():
    """A server that stood still has a longer window, once."""
    traffic = Traffic()
    traffic.now += 3600
    assert traffic.go(1, 0, 100)[-1]
