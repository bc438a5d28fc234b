"""The order of locks is watched in every test of commands."""

from __future__ import annotations

from tests.lock_order import watched

__all__ = ["watched"]
