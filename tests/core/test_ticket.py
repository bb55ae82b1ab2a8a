"""Tickets: who may end a wait, and how often."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from resilience_mw.core import Reply, Ticket, TicketState

NO = Reply(503)

MOVES: dict[str, Callable[[Ticket], bool]] = {
    "grant": Ticket.grant,
    "refuse": lambda ticket: ticket.refuse(NO),
    "abandon": Ticket.abandon,
    "give_back": Ticket.give_back,
}
TABLE = {
    (TicketState.WAITING, "grant"): TicketState.GRANTED,
    (TicketState.WAITING, "refuse"): TicketState.REFUSED,
    (TicketState.WAITING, "abandon"): TicketState.ABANDONED,
    (TicketState.GRANTED, "give_back"): TicketState.ABANDONED,
}
REACHED_BY = {
    TicketState.WAITING: (),
    TicketState.GRANTED: ("grant",),
    TicketState.REFUSED: ("refuse",),
    TicketState.ABANDONED: ("abandon",),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("state", TicketState)
def test_every_move_from_every_state_is_in_the_table(state: TicketState, move: str):
    """A move that is not allowed says so and changes nothing."""
    ticket = Ticket(0.0, 1.0)
    for step in REACHED_BY[state]:
        MOVES[step](ticket)
    assert ticket.state is state
    before = (ticket.state, ticket.reply)
    moved = MOVES[move](ticket)
    assert moved is ((state, move) in TABLE)
    assert ticket.state is TABLE.get((state, move), state)
    if not moved:
        assert (ticket.state, ticket.reply) == before


@pytest.mark.parametrize("moves", list(itertools.permutations(["grant", "refuse", "abandon"])))
def test_the_first_to_end_a_wait_wins(moves: tuple[str, ...]):
    """Of grant, refuse and abandon, in any order, exactly one has an effect."""
    ticket = Ticket(0.0, 1.0)
    assert [MOVES[move](ticket) for move in moves] == [True, False, False]
    assert ticket.waiting is False
    assert ticket.granted is (moves[0] == "grant")
    assert ticket.reply is (NO if moves[0] == "refuse" else None)


@pytest.mark.parametrize("moves", list(itertools.product(MOVES, repeat=3)))
def test_whoever_waits_is_woken_once_and_only_by_others(moves: tuple[str, ...]):
    """Grant and refuse wake; who abandons is awake already."""
    ticket = Ticket(0.0, 1.0)
    woken: list[TicketState] = []
    ticket.wake = lambda: woken.append(ticket.state)
    for move in moves:
        MOVES[move](ticket)
    ending = next((move for move in moves if move != "give_back"), None)
    expected = {"grant": [TicketState.GRANTED], "refuse": [TicketState.REFUSED]}
    assert woken == expected.get(ending or "", [])


def test_a_ticket_that_nobody_waits_on_yet_can_be_settled():
    """The driver may set `wake` after the gate has decided."""
    ticket = Ticket(0.0, 1.0)
    assert ticket.grant()
    assert ticket.granted
