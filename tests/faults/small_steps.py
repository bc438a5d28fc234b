"""The handlers of the tests, in a worker whose steps of a signal are so small that a few commands never reach everybody.

Only a worker of its own names this module (BATON_HANDLERS): its import changes the engine around it.
"""

from __future__ import annotations

from engine.commands import signals
from tests.worker import handlers_for_tests

signals.STEP_RECEIVERS = 20
__all__ = ["handlers_for_tests"]
