"""What runs in the workers of the storm: handlers that write down what they did, for the checker to read."""

from __future__ import annotations

import os
import time
from typing import Any

from worker.handlers import Context, handler

PLACE = "STORM_NOTES"  # the variable that names the file


@handler("storm.note")
def note(context: Context) -> dict[str, Any]:
    """One line for each run: idempotency key, what. Every eighth case takes longer than a lease is young."""
    what = str(context.inputs["what"])
    context.check()
    # One write to a file opened for appending: lines of several processes do not mix, and a kill loses none.
    file = os.open(os.environ[PLACE], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(file, f"{context.idempotency_key} /{what}\n".encode())
    os.close(file)
    if sum(what.encode()) % 8 == 0:
        time.sleep(0.6)
    return {"noted": what}
