"""`resilience-mw options`: every option there is."""

from __future__ import annotations

from typing import Literal

import click

from resilience_mw.config import as_json, markdown, options, table

WRITERS = {"table": table, "markdown": markdown, "json": as_json}


@click.command("options")
@click.option(
    "--format", "form", type=click.Choice(list(WRITERS)), default="table", show_default=True
)
def command(form: Literal["table", "markdown", "json"]) -> None:
    """List every option: its type, default and meaning.

    Each has five spellings: in Python Limit(max_concurrent_requests=100), in the environment
    RESILIENCE_LIMIT_MAX_CONCURRENT_REQUESTS=100, as a flag --limit-max-concurrent-requests 100,
    in the settings of Django and Flask RESILIENCE = {"limit": {"max_concurrent_requests": 100}},
    and in TOML max_concurrent_requests = 100 under [limit].
    """
    click.echo(WRITERS[form](options()))
