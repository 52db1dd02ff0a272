"""One simulation of watches: scores with a planted drop, drawn faults, rest, and the audit of the alerts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from tests.audit import alerts
from tests.audit.claims import Faults as Found
from tests.simulation.faults.drawing import Faults
from tests.simulation.watch_world import WatchWorld
from tests.support.alert_story import replayed, story

from traceweir.schemas.score import Score
from traceweir.streams.tools.alerts.alert_watch import AlertWatch
from traceweir.streams.tools.alerts.open_minutes import QUIET_S
from traceweir.streams.tools.alerts.state_rows import StateRows

AT_THE_END_WITHIN_S = 300.0
"""Virtual time after the last fault within which all scores must be read."""
STOPPED_WITHIN_S = 40.0
"""Virtual time after SIGTERM within which all processes must have ended."""
MEAN_SENT = 45
"""Mean number of scores that are sent between two faults."""
STATE = "state"
"""The heading of what is wrong with the topic of the state."""
WATCHES = "watches"
"""The heading of what is wrong with the processes that watch."""


def drawn_story(seed: int) -> list[Score]:
    """Returns scores of three days in which a pass rate drops at a drawn time, and recovers."""
    return story(seed, begins=1_450 + seed * 37 % 200, lasts=400 + seed * 53 % 500)


async def run(world: WatchWorld, scores: Sequence[Score], played: Faults, faults: int) -> str | None:
    """Plays a simulation to its end; returns a sentence if something does not happen in time."""
    rnd, left, drawn = world.rnd, [*scores], 0
    for number in range(rnd.choice((2, 2, 3))):
        world.start(f"a{number + 1}")
    while left or drawn < faults:
        await asyncio.sleep(rnd.expovariate(1 / world.scenario.pause_s))
        count = rnd.randint(1, 2 * MEAN_SENT)
        world.send(left[:count])
        del left[:count]
        if drawn < faults:
            played.play(drawn)
            drawn += 1
    played.end()
    if not await _until(world, AT_THE_END_WITHIN_S, world.owner_is_at_the_end):
        return f"not at the end in time after the last fault: {_states(world)}"
    # The last minutes are over after this time.
    await asyncio.sleep(QUIET_S + 15)
    world.restarts = False
    for watch in world.workers.values():
        if watch.process.alive:
            watch.terminate()
    if not await _until(
        world, STOPPED_WITHIN_S, lambda: not any(each.process.alive for each in world.workers.values())
    ):
        return f"not stopped in time: {_states(world)}"
    return None


def judged(world: WatchWorld, scores: Sequence[Score]) -> Found:
    """Returns a sentence for each fault, by heading and claim; empty if the watches are right."""
    expected = [json.loads(each.wire()) for each in replayed(scores).values()]
    if not expected:
        raise RuntimeError("the story raises no alert, so that nothing says whether one is lost")
    found = alerts.faults(world.rows(world.settings.topics.alerts), expected)
    if wrong := _state_faults(world, [each["alert_id"] for each in expected if each["state"] == "raised"]):
        found[STATE] = {"the_state_restores": wrong}
    if world.problems:
        found[WATCHES] = {"no_watch_meets_an_unexpected_error": world.problems}
    return found


def _state_faults(world: WatchWorld, raised: Sequence[str]) -> list[str]:
    """Checks that a new owner finds all that was read in the topic of the state, also after its compaction."""
    rows: dict[bytes, bytes] = {}
    for row in world.rows(world.settings.topics.alerts_state):
        if row.value is None:
            rows.pop(row.key or b"", None)
        else:
            rows[row.key or b""] = row.value
    watch = AlertWatch()
    begins = watch.load(rows).results
    head = StateRows.of(rows).head
    read = {} if head is None else head.read
    ends = {
        number: log.end for (topic, number), log in world.cluster.logs.items() if topic == world.settings.topics.results
    }
    found = []
    if read != ends:
        found.append(f"it has read up to {read}, and the topic has {ends}")
    # Minutes that are not over are read again.
    if any(begins[number] > read[number] for number in read):
        found.append(f"a new owner begins at {begins}, after what was read: {read}")
    if unread := world.unread():
        found.append(f"the offsets of the group are {unread} before the end")
    if (still := [each.alert_id for each in watch.raised]) != raised:
        found.append(f"in the end it has the raised alerts {still}, not {raised}")
    return found


async def _until(world: WatchWorld, within_s: float, holds: Callable[[], bool]) -> bool:
    until = world.loop.time() + within_s
    while world.loop.time() < until:
        if holds():
            return True
        await asyncio.sleep(1.0)
    return False


def _states(world: WatchWorld) -> dict[str, object]:
    return {
        name: (watch.watcher.readiness.stage, watch.watcher.readiness.trouble)
        if watch.process.alive and watch.watcher is not None
        else watch.process.exit_code
        for name, watch in world.workers.items()
    }
