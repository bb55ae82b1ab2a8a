"""An application that cannot be imported."""

from __future__ import annotations

raise RuntimeError("no application here")
