"""Events reach Kafka if it is there, and the agent goes on if it is slow, full or not there."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fake_transport import FakeTransport, FullTransport, HeldTransport
from traceweir.client import Counts, Recorder
from traceweir.client.delivery import QueueLimits, RecordQueue, Transport
from traceweir.client.problems import REPEAT_AFTER_S, ThrottledLog


def delivery(connect: Callable[[], Transport], events: int = 100, size: int = 10_000) -> RecordQueue:
    return RecordQueue(connect, QueueLimits(events, size), ThrottledLog())


def test_each_record_is_delivered_once_and_in_order() -> None:
    transport = FakeTransport()
    queue = delivery(lambda: transport)
    for number in range(100):
        queue.put("t", b"k", b"%d" % number)
    assert queue.close(5)
    assert [value for _, _, value in transport.records] == [b"%d" % number for number in range(100)]
    assert queue.counts == Counts(recorded=100, delivered=100, dropped=0, failed=0, pending=0)
    assert transport.is_closed


def test_a_full_queue_drops_and_counts() -> None:
    transport = HeldTransport()
    queue = delivery(lambda: transport, events=3)
    assert [queue.put("t", b"k", b"v") for _ in range(5)] == [True, True, True, False, False]
    assert queue.counts == Counts(recorded=5, delivered=0, dropped=2, failed=0, pending=3)
    transport.release.set()
    assert queue.close(5)
    assert queue.counts == Counts(recorded=5, delivered=3, dropped=2, failed=0, pending=0)


def test_the_size_of_what_waits_is_bounded() -> None:
    queue = delivery(HeldTransport, size=10)
    assert [queue.put("t", b"k", b"12345678"), queue.put("t", b"k", b"123"), queue.put("t", b"k", b"12")] == [
        True,
        False,
        True,
    ]
    queue.close(0)


def test_there_is_room_again_after_an_acknowledgement() -> None:
    transport = HeldTransport()
    queue = delivery(lambda: transport, events=1)
    queue.put("t", b"k", b"1")
    transport.release.set()
    assert queue.flush(5)
    assert queue.put("t", b"k", b"2")
    assert queue.close(5)


def test_a_transport_without_room_is_asked_again() -> None:
    transport = FullTransport(refusals=3)
    queue = delivery(lambda: transport)
    queue.put("t", b"k", b"1")
    queue.put("t", b"k", b"2")
    assert queue.close(5)
    assert [value for _, _, value in transport.records] == [b"1", b"2"]


def test_a_refused_record_loses_no_other(caplog: pytest.LogCaptureFixture) -> None:
    transport = FullTransport(refusals=0)
    queue = delivery(lambda: transport)
    for value in (b"1", b"too large", b"2"):
        queue.put("t", b"k", value)
    assert queue.close(5)
    assert [value for _, _, value in transport.records] == [b"1", b"2"]
    assert queue.counts == Counts(recorded=3, delivered=2, dropped=0, failed=1, pending=0)
    assert "1 so far: ValueError: the record is too large" in caplog.text


def test_without_a_broker_the_end_waits_no_longer_than_its_limit(caplog: pytest.LogCaptureFixture) -> None:
    queue = delivery(HeldTransport)
    queue.put("t", b"k", b"v")
    assert not queue.close(0)
    assert queue.counts == Counts(recorded=1, delivered=0, dropped=0, failed=1, pending=0)
    assert "1 events were not delivered within 0 s" in caplog.text


def test_a_client_that_does_not_start_fails_the_events() -> None:
    def connect() -> Transport:
        raise ValueError("no such option")

    queue = delivery(connect)
    queue.put("t", b"k", b"v")
    assert queue.flush(5)
    assert queue.counts.failed == 1
    queue.close(0)


def test_a_client_that_fails_once_delivers_later_events(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(FakeTransport):
        failures = iter([True])

        def poll(self, timeout_s: float) -> None:
            if next(self.failures, False):
                raise OSError("broken pipe")
            super().poll(timeout_s)

    queue = delivery(Failing)
    queue.put("t", b"k", b"v")
    queue.put("t", b"k", b"w")
    assert queue.close(5)
    assert queue.counts.delivered == 2
    assert "the Kafka client failed: OSError: broken pipe" in caplog.text


def test_a_process_without_room_for_a_thread_tries_again_with_the_next_event(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    queue = delivery(FakeTransport)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert queue.put("t", b"k", b"v")
    assert "no thread can be started that sends events: can't start new thread" in caplog.text
    assert queue.put("t", b"k", b"w")
    assert queue.close(5)
    assert queue.counts.delivered == 2


def test_a_closed_queue_drops() -> None:
    queue = delivery(FakeTransport)
    queue.close(0)
    assert not queue.put("t", b"k", b"v")
    assert queue.counts.dropped == 1


def test_records_of_many_threads_are_all_delivered() -> None:
    transport = FakeTransport()
    queue = delivery(lambda: transport, events=10_000, size=10**6)

    def work() -> None:
        for _ in range(200):
            queue.put("t", b"k", b"v")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert queue.close(5)
    assert queue.counts.delivered == len(transport.records) == 1_600


@pytest.mark.parametrize("limits", [(0, 1), (1, 0)])
def test_limits_below_one_are_refused(limits: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        QueueLimits(*limits)


def test_a_problem_is_logged_once_a_minute_with_its_count(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    problems = ThrottledLog(lambda: now_s)
    for _ in range(4):
        problems.report("dropped", "an event was dropped")
    problems.report("failed", "an event failed")
    now_s = REPEAT_AFTER_S
    problems.report("dropped", "an event was dropped")
    assert [record.message for record in caplog.records] == [
        "an event was dropped",
        "an event failed",
        "an event was dropped (3 more like this since the last message)",
    ]


def test_a_handler_that_raises_does_not_reach_the_agent() -> None:
    def raising(_: logging.LogRecord) -> bool:
        raise RuntimeError

    log = logging.getLogger("traceweir.client")
    log.addFilter(raising)
    try:
        ThrottledLog().report("any", "message")
    finally:
        log.removeFilter(raising)


AGENT = """
import {imports}
from pathlib import Path
from traceweir.client import Recorder

class File:
    def __init__(self): self.taken = []
    def send(self, topic, key, value, done):
        with Path({path!r}).open("ab") as file: file.write(value + b"\\n")
        self.taken.append(done)
    def poll(self, timeout_s):
        taken, self.taken = self.taken, []
        for done in taken: done("")
    def close(self): pass

recorder = Recorder("", connect=File)
def turn(answer):
    with recorder.invocation("hello", session_id="s") as turn:
        turn.answer = answer
if __name__ == "__main__":
    turn("parent")
    {then}
"""
FORK = """
    recorder.flush()
    child = os.fork()
    turn("child" if not child else "parent again")
    if child and os.waitpid(child, 0)[1]: sys.exit("the child failed")
"""
PROCESS = """
    child = multiprocessing.get_context({method!r}).Process(target=turn, args=("child",))
    child.start()
    child.join()
"""


def answers_of(tmp_path: Path, imports: str, then: str) -> list[str]:
    """Runs an agent to its end, and returns the events that its transports took, sorted, without their ids."""
    path = tmp_path / "events.jsonl"
    script = tmp_path / "agent.py"
    script.write_text(AGENT.format(imports=imports, then=then.strip(), path=str(path)))
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    import json

    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({event["event_id"] for event in events}) == len(events)
    return sorted(
        event["final_response"]["parts"][0]["text"] for event in events if event["type"] == "invocation.completed"
    )


@pytest.mark.slow
def test_nothing_is_lost_at_the_end_of_the_process(tmp_path: Path) -> None:
    assert answers_of(tmp_path, "os", "") == ["parent"]


@pytest.mark.slow
def test_nothing_is_lost_if_the_agent_ends_by_an_exit_in_a_turn(tmp_path: Path) -> None:
    then = "\n    with recorder.invocation('x') as t:\n        t.answer = 'last'\n        sys.exit(0)"
    assert answers_of(tmp_path, "sys", then) == ["last", "parent"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    assert answers_of(tmp_path, "os, sys", FORK) == ["child", "parent", "parent again"]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_multiprocessing_delivers_before_it_ends(tmp_path: Path, method: str) -> None:
    assert answers_of(tmp_path, "multiprocessing", PROCESS.format(method=method)) == ["child", "parent"]


def test_a_recorder_without_brokers_is_refused() -> None:
    with pytest.raises(ValueError, match="bootstrap_servers is empty"):
        Recorder("")
