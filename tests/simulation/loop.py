"""An event loop in virtual time, in which several simulated processes run. The order of ready callbacks is drawn.

Nothing waits: when no callback is ready, the time goes on to the next timer. Each callback belongs to the simulated process
in whose context it was created, so that a process can be killed, frozen and slowed without its cooperation.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar
from itertools import count
from typing import Any

STEP_S = 2e-5
"""Virtual time that each callback takes, so that a task which never waits does not stop the clock."""
NEAR_S = 0.05
"""The longest time of a timer that is not put on the grid, in seconds: messages are faster, periods are longer."""
START_S = 1_773_300_000.0
"""Wall clock at the start of the loop, in seconds since 1970."""

in_consumer_thread: ContextVar[bool] = ContextVar("in_consumer_thread", default=False)
"""Whether the running code belongs to the thread of a worker's consumer, which goes on while the event loop is blocked."""
process_of_context: ContextVar[Process | None] = ContextVar("process", default=None)
"""The process to which the running code belongs; None: the world around the processes."""


class ProcessEnded(BaseException):
    """Raised in code of a process that has ended: the code must not go on."""


class NothingHappensError(RuntimeError):
    """No callback and no timer is left, so the loop would wait without end."""


class Process:
    """A simulated operating system process: a name, a life, and a clock.

    Args:
        name: The name, for the story.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.exit_code: int | None = None
        self.clock_offset_s = 0.0
        """Seconds by which the wall clock of the process is ahead of the others."""
        self.frozen = False
        self.blocked = False
        """Whether code of the process computes, so that no other callback of its event loop runs."""
        self.has_lost_a_task = False
        """Whether a fault has cancelled one of its tasks."""
        self.held: list[asyncio.Handle] = []
        """The callbacks that became ready while the process was frozen or blocked."""
        self.context = Context()
        self.context.run(process_of_context.set, self)
        self.ended: Callable[[], object] = lambda: None
        """Called once, when the process ends."""

    def end(self, code: int) -> None:
        """Ends the process at once: none of its code runs any more."""
        if self.alive:
            self.alive, self.exit_code = False, code
            self.held.clear()
            self.ended()

    @property
    def suspended(self) -> bool:
        """Whether no code of the process can run now."""
        return self.frozen or not self.alive


class _Task(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address in memory."""

    _numbers = count()

    def __init__(self, *args: Any, **options: Any) -> None:
        self._number = next(_Task._numbers)
        self.process = process_of_context.get()
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._number


class _Future(asyncio.Future[Any]):
    """A future whose place in a set does not depend on its address in memory."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._number = next(_Task._numbers)
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._number


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop of a simulated world.

    Args:
        rnd: Draws which ready callback runs next.
        shuffled: The share of callbacks that are drawn; the others run in the order in which they became ready.
    """

    _ready: deque[Any]
    _scheduled: list[Any]
    _stopping: bool

    def __init__(self, rnd: random.Random, shuffled: float = 0.3) -> None:
        super().__init__()
        self._rnd, self._shuffled = rnd, shuffled
        self._now = 0.0
        self.slowness = 1.0
        """Factor on the time of each function in a thread."""
        self.grid_s = 0.0
        """Timers that are set for longer than `NEAR_S` end at multiples of so many seconds; 0: each ends at its own time.

        All that a quiet worker does each second it then does at once each `grid_s`, so that days can be played."""
        self.steps = 0
        """Number of callbacks that have run."""
        self.errors: list[dict[str, Any]] = []
        """What was passed to the exception handler."""
        self.set_task_factory(lambda loop, work, **options: _Task(work, loop=loop, **options))
        self.set_exception_handler(lambda _, context: self.errors.append(context))

    def time(self) -> float:
        """Returns the virtual time in seconds since the start of the loop."""
        return self._now

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:  # type: ignore[override]
        """Sets a timer, on the grid if there is one."""
        if self.grid_s and when - self._now > NEAR_S:
            when = math.ceil(when / self.grid_s) * self.grid_s
        return super().call_at(when, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """Returns a future of this loop."""
        return _Future(loop=self)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Runs a function in place of a thread, after a drawn time."""
        future = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except Exception as error:  # noqa: BLE001  # passed on
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self._rnd.uniform(0.0001, 0.01) * self.slowness, run)
        return future

    def tasks_of(self, process: Process) -> list[asyncio.Task[Any]]:
        """Returns the unfinished tasks of a process, but the first, which stands for the process itself."""
        found = [task for task in asyncio.all_tasks(self) if getattr(task, "process", None) is process]
        return sorted(found, key=hash)[1:]

    def timers(self) -> list[asyncio.TimerHandle]:
        """Returns the timers that are set and were not cancelled."""
        return [handle for handle in self._scheduled if not handle._cancelled]

    def resume(self, process: Process) -> None:
        """Wakes a frozen process: what became ready meanwhile is ready now."""
        process.frozen = False
        self._release(process)

    def unblock(self, process: Process) -> None:
        """Lets the event loop of a process run again."""
        process.blocked = False
        self._release(process)

    def _release(self, process: Process) -> None:
        held, process.held = process.held, []
        self._ready.extend(held)

    # What the base class asks of a loop

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        if not ready:
            while scheduled and scheduled[0]._cancelled:
                heapq.heappop(scheduled)._scheduled = False
            if scheduled:
                self._now = max(self._now, scheduled[0]._when)
            elif not self._stopping:
                raise NothingHappensError("no callback is ready, and no timer is set")
        while scheduled and scheduled[0]._when <= self._now:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                ready.append(handle)
        if ready:
            self._run_one()

    def _run_one(self) -> None:
        ready = self._ready
        if len(ready) > 1 and self._rnd.random() < self._shuffled:
            place = self._rnd.randrange(len(ready))
            handle = ready[place]
            del ready[place]
        else:
            handle = ready.popleft()
        if handle._cancelled:
            return
        process = handle._context.get(process_of_context)
        if process is not None and process.suspended:
            if process.alive:
                process.held.append(handle)
            return
        if process is not None and process.blocked and not handle._context.get(in_consumer_thread):
            process.held.append(handle)
            return
        self.steps += 1
        self._now += STEP_S
        handle._run()
