"""What must hold in every state. `Everything comes to rest` is about whole runs, and stands in rest.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.lease_model.moves import MOST
from tests.lease_model.state import State


def _one_end(state: State) -> bool:
    return state.ledger.ends[state.row.number] == (0 if state.row.status == "leased" else 1) and max(state.ledger.ends) <= 1


def _final(state: State) -> bool:
    return not state.ledger.end or state.row.status == state.ledger.end


def _lease(state: State) -> bool:
    row = state.row
    return not row.expired or row.status == "leased"


CLAIMS: Mapping[str, Callable[[State], bool]] = MappingProxyType(
    {
        "no report counts under a number that is not the row's": lambda state: not state.ledger.stale,
        "what is completed or cancelled stays so": _final,
        "an item is completed once": lambda state: state.ledger.completions <= 1,
        "a lease ends once, and then it is not held": _one_end,
        "what is completed had its effect at least once": lambda state: state.ledger.effect or not state.ledger.completions,
        "no handler starts under a lease that has expired": lambda state: not state.ledger.late_start,
        "attempts stay between none and all": lambda state: 0 <= state.row.attempts <= state.row.maximum <= MOST,
        "only a lease expires": _lease,
    }
)
