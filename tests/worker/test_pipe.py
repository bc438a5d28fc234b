"""Messages between a worker and a handler's process: whole, in order, bounded, and the end is told."""

from __future__ import annotations

import socket
import threading
from decimal import Decimal

import pytest

from worker.calling import Call, from_pickle, to_pickle
from worker.pipe import Pipe


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    made = Pipe(ours), Pipe(theirs)
    yield made
    for end in made:
        end.close()


def test_messages_of_any_length_arrive_whole_and_in_order(ends):
    ours, theirs = ends
    messages = [b"", b"short", b"x" * 3_000_000, b"y" * 70_000, b"last"]
    sender = threading.Thread(target=lambda: [ours.send(message) for message in messages])
    sender.start()
    assert [theirs.receive() for _ in messages] == messages
    sender.join()


def test_a_message_that_came_with_an_earlier_one_is_ready_at_once(ends):
    ours, theirs = ends
    assert not theirs.ready(0)
    ours.send(b"first")
    ours.send(b"second")
    assert theirs.receive() == b"first"
    assert theirs.ready(0)
    assert theirs.receive() == b"second"
    assert not theirs.ready(0)


def test_a_longer_message_than_expected_is_refused_before_it_is_read(ends):
    ours, theirs = ends
    ours.send(b"x" * 11)
    with pytest.raises(ValueError, match="expected at most 10 bytes, found 11"):
        theirs.receive(10)


def test_the_end_of_the_other_side_is_ready_and_told(ends):
    ours, theirs = ends
    ours.close()
    assert theirs.ready(0)
    with pytest.raises(EOFError):
        theirs.receive()


def test_a_call_arrives_as_it_was_sent():
    sent = Call("topic", "key", 1, 3, None, "task", "instance", {"net": Decimal("12.50")}, {"list": [1, "a"]}, {"head": "er"})
    assert from_pickle(to_pickle(sent)) == sent
