"""Options: declared once, spelled five ways, checked with one-line errors.

`Config` and its sections are what users write; `resolve` puts arguments, flags, environment and
settings together; `options` lists everything for tables and help.
"""

from __future__ import annotations

from resilience_mw.config.config import Config
from resilience_mw.config.describe import Row, as_json, markdown, options, table
from resilience_mw.config.handing import flags_in, hand_down, handed_down
from resilience_mw.config.noting import note, noted
from resilience_mw.config.option import ENV_PREFIX, Option, option
from resilience_mw.config.options import Backpressure, Deadline, Health, Limit, Runner
from resilience_mw.config.resolve import Resolved, resolve, section_from_kwargs
from resilience_mw.config.section import Section, options_of

__all__ = [
    "ENV_PREFIX",
    "Backpressure",
    "Config",
    "Deadline",
    "Health",
    "Limit",
    "Option",
    "Resolved",
    "Row",
    "Runner",
    "Section",
    "as_json",
    "flags_in",
    "hand_down",
    "handed_down",
    "markdown",
    "note",
    "noted",
    "option",
    "options",
    "options_of",
    "resolve",
    "section_from_kwargs",
    "table",
]
