"""The whole matrix of overload on real servers, beside the protections that others offer.

    python -m benchmarks.overload --quick       # a few telling cells, under three minutes
    python -m benchmarks.overload               # everything, some hours; --resume after a break

Eight kinds of work, four loads, both event loops, connections kept or new for every request, seven
protections; then a step, recovery, a pause, idle connections and probes. Servers have one CPU to
themselves, the open-loop generator and Envoy another. Results go to a JSON file from which the
page and its pictures are written.
"""

from __future__ import annotations
