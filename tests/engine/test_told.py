"""A signal is heard whatever the main thread is at when it arrives."""

from __future__ import annotations

import signal
import threading

from engine.told import when_told


def test_a_signal_that_arrives_while_the_main_thread_holds_what_it_is_told_by_is_heard_each_time():
    told, twice, before = threading.Semaphore(0), threading.Event(), signal.getsignal(signal.SIGUSR1)

    def tell() -> None:
        told.release()
        if told._value == 2:
            twice.set()

    try:
        when_told([signal.SIGUSR1], tell)
        with told._cond:  # in the middle of `acquire`
            signal.raise_signal(signal.SIGUSR1)
            signal.raise_signal(signal.SIGUSR1)
        assert twice.wait(10)
    finally:
        signal.signal(signal.SIGUSR1, before)
