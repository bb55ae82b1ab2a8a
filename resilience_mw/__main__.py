"""`python -m resilience_mw` is the same program as `resilience-mw`."""

from __future__ import annotations

import sys

from resilience_mw.cli import main

sys.exit(main())
