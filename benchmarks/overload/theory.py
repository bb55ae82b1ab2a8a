"""How much of an overload anyone could serve."""

from __future__ import annotations

# Above this share of one CPU a server is CPU-bound, whatever the clock's grain makes of it.
CPU_BOUND = 0.9


def service_time(capacity: float, cpu_share: float) -> float:
    """CPU seconds that one request takes, from a saturated server's throughput and CPU share."""
    return (1.0 if cpu_share >= CPU_BOUND else cpu_share) / capacity


def best_goodput(offered: float, capacity: float, service: float, refusal: float) -> float:
    """The most requests a second that can be served while the rest is refused.

    A CPU that serves g of L requests a second and refuses the others is full when
    g s + (L - g) r = 1, hence G = (1 - L r) / (s - r). Nor can more be served than is offered,
    or than another bottleneck (a pool, threads) lets through.

    Args:
        offered: L, requests a second.
        capacity: requests a second in a closed loop, whatever limits them.
        service: s, CPU seconds a request served.
        refusal: r, CPU seconds a request refused.
    """
    most = min(offered, capacity)
    if service <= refusal:
        # Serving costs no more than refusing: the CPU prefers neither.
        return most
    return max(0.0, min(most, (1 - offered * refusal) / (service - refusal)))
