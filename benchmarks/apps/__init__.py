"""Small real applications, one path for each kind of work that overload treats differently."""

from __future__ import annotations
