"""Signing secrets of destinations, in the form that Standard Webhooks gives them (decision 0109).

A secret is derived from the application's secret key and a salt. The salt alone is stored, so a copy of the database signs nothing,
and there is nothing in it to show again or to log.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from hashlib import sha256
from secrets import token_urlsafe

PURPOSE = b"baton signing secret of a destination\0"


def new_salt() -> str:
    return token_urlsafe(24)


def signing_secret(secret_key: str, salt: str) -> str:
    """`whsec_` and 32 bytes in base64: what the receiver verifies with."""
    return "whsec_" + b64encode(hmac.new(secret_key.encode(), PURPOSE + salt.encode(), sha256).digest()).decode()
