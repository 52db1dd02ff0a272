"""Tests that frames are written in their order, together if they follow each other closely, and never kept."""

import asyncio
from itertools import chain

import pytest

from traceweir.streams.scoring.isolation import frame_writer
from traceweir.streams.scoring.isolation.frame_writer import MOST_TOGETHER, TOGETHER_S, FrameWriter
from traceweir.streams.scoring.isolation.protocol import Ask, Frames


class Connection(asyncio.Transport):
    """Keeps the numbers of the frames of each write."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[list[int]] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Takes the frames of a write."""
        self.written.append([frame.number for frame in Frames().of(bytes(data))])

    def is_closing(self) -> bool:
        """Returns whether the other process has ended."""
        return self.closed


class Clock:
    """Tells a time that stands still between the tests' own steps."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Returns the time in seconds."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the writer."""
    clock = Clock()
    monkeypatch.setattr(frame_writer, "monotonic", clock)
    return clock


def ask(number: int) -> Ask:
    """Returns a frame that is known by its number."""
    return Ask(number, b"{}")


async def test_a_frame_after_a_pause_is_written_at_once(clock: Clock) -> None:
    """A session after a pause waits for nothing."""
    connection = Connection()
    writer = FrameWriter(connection)

    writer.write(ask(1))
    clock.now += TOGETHER_S
    writer.write(ask(2))

    assert connection.written == [[1], [2]]


async def test_frames_that_follow_closely_are_one_write(clock: Clock) -> None:
    """The other process is woken a second time for all frames after the first."""
    connection = Connection()
    writer = FrameWriter(connection)

    for number in range(MOST_TOGETHER):
        writer.write(ask(number))
    await asyncio.sleep(0)

    assert connection.written == [[0], [*range(1, MOST_TOGETHER)]]


async def test_few_frames_wait(clock: Clock) -> None:
    """A process that dies takes the answers that wait with it."""
    connection = Connection()
    writer = FrameWriter(connection)

    for number in range(MOST_TOGETHER + 5):
        writer.write(ask(number))

    assert connection.written == [[0], [*range(1, MOST_TOGETHER + 1)]]


async def test_a_busy_event_loop_does_not_keep_frames(clock: Clock) -> None:
    """Frames of a long turn of the event loop are written while it goes on."""
    connection = Connection()
    writer = FrameWriter(connection)

    writer.write(ask(1))
    writer.write(ask(2))
    clock.now += TOGETHER_S
    writer.write(ask(3))
    assert connection.written == [[1], [2, 3]]

    await asyncio.sleep(0)  # what was planned for the end of the turn finds nothing to write
    assert connection.written == [[1], [2, 3]]


async def test_frames_keep_their_order_over_turns(clock: Clock) -> None:
    """Whatever waits is written before what comes later."""
    connection = Connection()
    writer = FrameWriter(connection)

    for turn in range(20):
        for number in range(7):
            writer.write(ask(turn * 7 + number))
            clock.now += TOGETHER_S / 4
        await asyncio.sleep(0)

    assert list(chain.from_iterable(connection.written)) == [*range(140)]


async def test_frames_for_a_closed_connection_are_discarded(clock: Clock) -> None:
    """A process can end while frames wait for it; uvloop's transport would raise then."""
    connection = Connection()
    writer = FrameWriter(connection)

    writer.write(ask(1))
    writer.write(ask(2))
    connection.closed = True
    await asyncio.sleep(0)
    clock.now += TOGETHER_S
    writer.write(ask(3))

    assert connection.written == [[1]]
