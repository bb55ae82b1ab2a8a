"""What overload does to an app, without and with protection: `make demo`."""

from __future__ import annotations
