"""The page about Uvicorn has the numbers that the code has."""

from __future__ import annotations

from uvicorn.config import STARTUP_FAILURE

from benchmarks.process import ROOT
from resilience_mw.runner.crashes import CRASHES, EXIT_CODE, SOON
from resilience_mw.runner.drain import MARGIN
from resilience_mw.runner.uvicorn.accept import MOST
from resilience_mw.runner.uvicorn.protocol import HEAD_GRACE
from resilience_mw.runner.uvicorn.server import LINGER

PAGE = (ROOT / "docs" / "uvicorn.md").read_text()
WORDS = {2.0: "two", 5: "five"}


def test_the_page_has_the_numbers_of_the_code():
    """Each in the sentence where it matters."""
    for sentence in (
        f"{WORDS[CRASHES]} in a row that die within {SOON:g} s of their start "
        f"end the whole with code {EXIT_CODE}",
        f"up to {MOST} a turn",
        f"a half-received head has {HEAD_GRACE:g} s more",
        f"answers on idle connections for {WORDS[LINGER]} seconds",
        f"for what is left of {WORDS[MARGIN]} more seconds",
        f"| {STARTUP_FAILURE} | did not start",
    ):
        assert sentence in PAGE, sentence
