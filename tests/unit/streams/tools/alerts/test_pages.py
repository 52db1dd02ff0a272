"""The pages of `traceweir alerts run`: ready where it watches or waits, with a gauge for each rule that has alerts."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp
from tests.support.metrics import samples
from tests.support.paths import ROOT

from traceweir.schemas.alert import Alert
from traceweir.streams.tools.alerts.pages import alerts_health
from traceweir.streams.tools.export.readiness import Readiness
from traceweir.streams.worker.kafka.silence import LastAnswer
from traceweir.streams.worker.runtime.health import bind

ALERT = Alert.model_validate_json((ROOT / "tests" / "golden" / "1.0" / "Alert.json").read_bytes())


@dataclass
class Watching:
    """A watcher, as far as its pages tell of it."""

    readiness: Readiness
    counts: Counter[str] = field(default_factory=Counter)
    raised: Sequence[Alert] = ()
    lag: int | None = None


async def get(url: str) -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.read()


async def test_a_process_is_ready_while_it_watches_or_waits_and_its_broker_answers() -> None:
    seconds = [0.0]
    watcher = Watching(Readiness(LastAnswer(lambda: seconds[0]), lambda: seconds[0]))
    taken = bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    async with alerts_health(taken, watcher, asyncio.Event()):
        assert (await get(f"{url}/readyz"))[0] == 503
        watcher.readiness.last_answer.note(answered=True)
        watcher.readiness.reach_ready([])
        status, body = await get(f"{url}/readyz")
        assert status == 200
        assert json.loads(body)["raised"] == 0
        seconds[0] = 60.0
        assert (await get(f"{url}/healthz"))[0] == 503


async def test_the_gauge_counts_the_slices_that_have_an_alert() -> None:
    watcher = Watching(Readiness(), Counter(read=5), [ALERT, ALERT], 7)
    taken = bind("127.0.0.1", 0)
    async with alerts_health(taken, watcher, asyncio.Event()):
        _, body = await get(f"http://127.0.0.1:{taken.getsockname()[1]}/metrics")
    found = samples(body)
    # The labels in the order of their names: level, metric, rule.
    assert found["alerts_raised", "session", "helpful", "any-pass-rate-drops"] == 2
    assert (found["alerts_lag",], found["alerts_scores_total", "read"], found["alerts_scores_total", "late"]) == (
        7,
        5,
        0,
    )
