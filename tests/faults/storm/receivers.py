"""The outside world of a storm: the receiver of tests/faults, in another mood.

    python -m tests.faults.storm.receivers PORT_FILE LOG

Each fifth path is refused at its first call (503), so that attempts follow attempts without any fault; each eighth one
keeps its caller waiting.
"""

from __future__ import annotations

import sys
import threading
import time

from tests.faults.receiver import Handler, main


class Moody(Handler):
    refused: set[str] = set()
    lock = threading.Lock()

    def status(self, path: str, query: str) -> int:
        mark = sum(path.encode())
        with self.lock:
            refuse = mark % 5 == 0 and path not in self.refused
            self.refused.add(path)
        if mark % 8 == 0:
            time.sleep(0.8)
        return 503 if refuse else 200


if __name__ == "__main__":
    main(*sys.argv[1:], handler=Moody)
