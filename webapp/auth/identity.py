"""Who asks. Loaded once a request, from the session cookie or from an API key; `current_actor()` is the engine's view of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import Any, TypeVar, cast
from uuid import UUID

from flask import abort, g

from engine.commands.outcome import Actor

View = TypeVar("View", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Identity:
    """A person who is signed in, or whose API key was sent. `by_key`: no cookie was involved, so no CSRF is possible.

    `scopes`: what the key is limited to; None for a session and for a key without scopes, which may what its person may.
    """

    person_id: UUID
    actor: Actor
    theme: str
    now: datetime  # the database's clock when the request came
    by_key: bool = False
    scopes: tuple[str, ...] | None = None


def identity() -> Identity | None:
    """Whoever asks, or None for a guest."""
    return cast(Identity | None, g.get("identity"))


def current_actor() -> Actor:
    """The signed-in actor. Views that are not `public` always have one."""
    who = identity()
    if who is None:
        abort(401)
    return who.actor


def is_operator(actor: Actor) -> bool:
    return actor.role in ("operator", "administrator")


def public(view: View) -> View:
    """Mark a view that guests may use. Everything else is closed."""
    view.is_public = True  # type: ignore[attr-defined]  # a mark on the function, read by webapp.security
    return view


def operators_only(view: View) -> View:
    """403 for whoever is neither operator nor administrator."""

    @wraps(view)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not is_operator(current_actor()):
            abort(403)
        return view(*args, **kwargs)

    return cast(View, guarded)
