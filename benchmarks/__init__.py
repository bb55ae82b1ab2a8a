"""Load generator, server launchers and applications: what we measure ourselves with.

Not part of the installed package. Everything here talks to loopback addresses only.
"""

from __future__ import annotations
