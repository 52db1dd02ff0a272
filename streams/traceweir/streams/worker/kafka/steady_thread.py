"""Keeps the event loop of Faust's consumer thread awake, without a check by the clock."""

from __future__ import annotations

from typing import Any

WAKE_EVERY_S = 1.1


class SteadyThread:
    """Replaces the keepalive of a `mode.ServiceThread`; list this class before it.

    mode's keepalive wakes the event loop of the thread, and logs `Thread keepalive is not responding` when its own
    wake-up came 2 s late. This is also the case after a pause of the whole process, for example of a laptop that was
    asleep or of a container without CPU, and is then no fault of the thread. A thread that makes no progress is found by
    the watchdog, which counts its checks instead of the time.
    """

    should_stop: bool
    sleep: Any
    _wakeup_timer_in_thread: Any

    async def _keepalive2(self) -> None:
        while not self.should_stop:
            await self.sleep(WAKE_EVERY_S)
            await self._wakeup_timer_in_thread()
