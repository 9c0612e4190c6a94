# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""sharing.Group: one send to several channels."""
import multiprocessing as mp
import os
import signal
import threading
import time

import pytest

import devtensor as dt
from devtensor import sharing


def pairs(n):
    ends = [sharing.pair(ring=True) for _ in range(n)]
    return [a for a, _ in ends], [b for _, b in ends]


def tags(channel):
    """The numbers of all messages that have come."""
    got = []
    while (message := channel.try_recv_many()) is not None:
        (x,), tag = message
        assert x.item() == tag
        got.append(tag)
    return got


def test_all_receivers_get_each_message_also_late_ones():
    out, ins = pairs(3)
    with sharing.Group(out[:2], window=16) as group:
        for i in range(10):
            if i == 5:
                group.add(out[2])
            assert group.send([dt.tensor([i])], tag=i) == (2 if i < 5 else 3)
        assert [tags(c) for c in ins] == [list(range(10)), list(range(10)), list(range(5, 10))]
        assert group.count == 3
        group.remove(out[0])
        assert group.send([dt.tensor([10])], 10) == 2 and tags(ins[0]) == []


def test_each_message_goes_to_the_next():
    out, ins = pairs(2)
    with sharing.Group(out, to='next', window=2) as group:
        for i in range(4):
            assert group.send([dt.tensor([i])], i) == 1
        with pytest.raises(TimeoutError):
            group.send([dt.tensor([4])], 4, timeout=0.05)
        assert [tags(c) for c in ins] == [[0, 2], [1, 3]]


def test_a_slow_receiver_waits_drops_or_refuses():
    out, ins = pairs(2)
    with sharing.Group(out, full='drop', window=3) as group:
        for i in range(10):
            assert group.send([dt.tensor([i])], i) == 2
            assert tags(ins[0]) == [i]
        assert tags(ins[1]) == [7, 8, 9]
        assert group.stats(out[1]) == {'sent': 10, 'dropped': 7, 'in_flight': 0, 'alive': True}
    with sharing.Group(out, full='refuse', window=1) as group:
        assert group.send([dt.tensor([0])], 0) == 2
        with pytest.raises(BlockingIOError):
            group.send([dt.tensor([1])], 1)


def die(channel):
    channel.recv_many()
    held = channel.recv_many()
    os.kill(os.getpid(), signal.SIGKILL)
    del held


def run(target, other, channel):
    other.close()
    target(channel)


def test_a_death_gives_back_what_was_not_released():
    a, b = sharing.pair()
    process = mp.get_context('fork').Process(target=run, args=(die, a, b))
    process.start()
    b.close()
    with sharing.Group([a], to='next', window=4) as group:
        for i in range(3):
            group.send([dt.tensor([i])], i)
        process.join(20)
        end = time.monotonic() + 20
        while group.count and time.monotonic() < end:
            time.sleep(0.01)
        assert group.lost() == [1, 2] and group.lost() == []
        with pytest.raises(OSError):
            group.send([dt.tensor([3])])


def count_while_a_send_waits():
    signal.alarm(20)
    (a,), (b,) = pairs(1)
    tags(b)
    with sharing.Group([a], window=4096) as group:
        sender = threading.Thread(target=lambda: [group.send([dt.tensor([i])], i) for i in range(300)])
        sender.start()
        time.sleep(0.2)
        other = threading.Thread(target=lambda: (group.count, group.stats(a), group.lost()))
        other.start()
        time.sleep(0.2)
        got = []
        while len(got) < 300:
            got += tags(b)
        sender.join()
        other.join()
    os._exit(0 if got == list(range(300)) else 1)


def test_calls_beside_a_send_that_waits_leave_the_interpreter_to_others():
    process = mp.get_context('fork').Process(target=count_while_a_send_waits)
    process.start()
    process.join(40)
    assert process.exitcode == 0


def test_wrong_arguments_raise():
    a, b = sharing.pair()
    for wrong in [{'to': 'some'}, {'full': 'never'}, {'window': 0}, {'window': 4097}]:
        with pytest.raises(ValueError):
            sharing.Group(**wrong)
    group = sharing.Group([a])
    with pytest.raises(OSError):
        group.add(a)
    with pytest.raises(TypeError):
        group.add(3)
    with pytest.raises(OSError):
        group.remove(b)
    with pytest.raises(RuntimeError):
        a.close()
    with pytest.raises(ValueError):
        group.send([dt.zeros(1)] * 65)
    group.close()
    group.close()
    assert group.closed
    with pytest.raises(ValueError):
        group.send([dt.zeros(1)])
    a.close()
