"""Fragments that pages fetch again: an entity tag over what they show, so that an unchanged one costs no HTML."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from flask import Response, make_response, request


def tagged(shown: Any, render: Callable[[], str]) -> Response:
    """The fragment with an ETag over `shown` (what it is made of), or 304 if the page has that one already.

    Not over the HTML: that carries fresh CSRF tokens and request ids each time. Relative times are kept by the page itself.
    """
    tag = sha256(repr(shown).encode()).hexdigest()[:24]
    response = Response(status=304) if request.if_none_match.contains(tag) else make_response(render())
    response.set_etag(tag)
    response.headers["Cache-Control"] = "private, no-cache"
    return response
