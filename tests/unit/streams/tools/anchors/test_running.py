"""Tests the run over anchors against a judge on this machine: it is asked each time, and its changes are found."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.support.anchors import CONFIG, CRITERION, anchor, safe_but, watched
from tests.support.judged import Clock
from tests.support.openai_server import OpenAiServer, Say, openai_server

from traceweir.schemas.anchor import Anchor, AnchorVerdict
from traceweir.scorers import read_plan
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.statistics.watched_judge import HOUR
from traceweir.streams.base.statistics.watched_stream import Promise
from traceweir.streams.tools.anchors.judging import anchor_judging, anchor_sets
from traceweir.streams.tools.anchors.running import AnchorRun
from traceweir.streams.tools.anchors.watch import AnchorWatch

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("litellm")]
NAMES = [f"n{number:02d}" for number in range(10)]
QUICK = Promise(0.0, days_between_false_alarms=1, baseline_days=0.3, step_minutes=HOUR)


class Written:
    """Keeps verdicts in place of Kafka."""

    def __init__(self) -> None:
        self.verdicts: list[AnchorVerdict] = []
        self.fails = False

    def write(self, records: Mapping[bytes, bytes | None]) -> None:
        if self.fails:
            raise NotReadyError("Kafka did not accept 1 verdict")
        self.verdicts += [AnchorVerdict.model_validate_json(value or b"") for value in records.values()]


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [each for each in messages if each.startswith("anchors:")]


@pytest.fixture
async def server() -> AsyncIterator[OpenAiServer]:
    async with openai_server(default=lambda body: safe_but((), body)) as found:
        yield found


class Playing:
    """Runs over the anchors with a clock that goes on by itself."""

    def __init__(self, server: OpenAiServer, tmp_path: Path, config: Mapping[str, Any] = CONFIG) -> None:
        self.clock = Clock()
        self.written = Written()
        self.watch = AnchorWatch(QUICK)
        self.config = config
        self.settings = Settings(
            judge_cache=tmp_path / "verdicts.sqlite3", judge_api_base=server.url, judge_api_key=SecretStr("k" * 20)
        )

    async def play(self, number: int, anchors: Sequence[Anchor] | None = None, per_day: int = 240) -> int:
        plan = read_plan(dict(self.config))
        sets, _ = anchor_sets(plan, anchors or [anchor(name) for name in NAMES])

        async def pause(seconds: float) -> bool:
            self.clock.now += timedelta(seconds=seconds)
            await asyncio.sleep(0)
            return True

        with anchor_judging(plan, self.settings, self.clock) as judging:
            run = AnchorRun(
                sets,
                judging,
                self.written,
                self.watch,
                per_day=per_day,
                clock=self.clock,
                pause=pause,
                timeout_s=30,
            )
            return await run.run(number)


async def test_the_judge_is_asked_each_time_at_even_times_and_its_cost_is_known(
    server: OpenAiServer, tmp_path: Path
) -> None:
    playing = Playing(server, tmp_path)
    assert await playing.play(12) == 12
    assert len(server.asked) == 12
    found = playing.written.verdicts
    assert {later.due_at - earlier.due_at for earlier, later in itertools.pairwise(found)} == {timedelta(minutes=6)}
    assert {(each.passed, each.judge, each.cost.input_tokens, each.cost.cached) for each in found} == {
        (True, "openai/local", 100, False)
    }
    assert len({each.anchor_id for each in found}) < 12


async def test_a_judge_that_changes_under_the_same_name_is_found_without_a_score_of_an_agent(
    server: OpenAiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    playing = Playing(server, tmp_path)
    await playing.play(90)
    assert playing.watch.criteria[CRITERION].changes == []
    server.default = lambda body: safe_but(NAMES[:5], body)
    with caplog.at_level(logging.WARNING, "traceweir"):
        await playing.play(30)
    watch = playing.watch.criteria[CRITERION]
    [change] = watch.changes
    assert change.side == "stricter"
    [said] = warnings_of(caplog)
    assert said.startswith(f"anchors: the judge of {CRITERION} is stricter: of the anchors that passed, ")
    # The judge answers by the same name, and the log alone tells the same again.
    assert {each.judge for each in playing.written.verdicts} == {"openai/local"}
    assert watched(playing.written.verdicts, QUICK).criteria[CRITERION].changes == [change]


async def test_a_restart_goes_on_after_the_last_turn(server: OpenAiServer, tmp_path: Path) -> None:
    playing = Playing(server, tmp_path)
    await playing.play(3)
    again = Playing(server, tmp_path)
    again.watch = watched(playing.written.verdicts)
    # The clock of another machine is behind.
    again.clock.now = playing.clock.now - timedelta(minutes=2)
    await again.play(1)
    assert again.written.verdicts[0].due_at == playing.written.verdicts[-1].due_at + timedelta(minutes=6)


async def test_a_judge_that_is_down_gives_no_verdict_and_the_run_goes_on(
    server: OpenAiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.default = lambda body: Say(status=500, body=b"{}")
    playing = Playing(server, tmp_path)
    with caplog.at_level(logging.WARNING, "traceweir"):
        assert await playing.play(3) == 0
    assert [(each.passed, each.cause) for each in playing.written.verdicts] == [(None, "judge_unavailable")] * 3
    assert playing.watch.criteria[CRITERION].missing == {"judge_unavailable": 3}
    said = warnings_of(caplog)
    assert len(said) == 1
    assert "nothing is taken in its place" in said[0]


async def test_a_budget_that_is_spent_is_not_exceeded(server: OpenAiServer, tmp_path: Path) -> None:
    config = CONFIG | {
        "judge": {"retries": {"attempts": 1}, "max_output_tokens": 100, "budget": {"tokens_per_day": 3_000}}
    }
    playing = Playing(server, tmp_path, config)
    await playing.play(100)
    said = {each.not_evaluated_because for each in playing.written.verdicts}
    assert said == {None, "budget"}
    assert 110 * len(server.asked) <= 3_000


async def test_a_verdict_that_kafka_does_not_take_is_not_counted(server: OpenAiServer, tmp_path: Path) -> None:
    playing = Playing(server, tmp_path)
    playing.written.fails = True
    assert await playing.play(2) == 0
    assert playing.watch.criteria == {}
    playing.written.fails = False
    assert await playing.play(1) == 1


def test_anchors_that_the_config_cannot_judge_are_named() -> None:
    others = [
        anchor("a", criterion="helpful"),
        anchor("b", criterion="response_match_score"),
        anchor("c", subject=anchor("c").subject.model_copy(update={"level": "session", "invocation_id": None})),
    ]
    sets, unused = anchor_sets(read_plan(CONFIG), others)
    assert sets == {}
    assert set(unused) == {"helpful", "response_match_score", CRITERION}


def test_another_anchor_label_or_threshold_is_another_set() -> None:
    def set_id(*anchors: Anchor, threshold: float = 0.5) -> str:
        criterion = CONFIG["criteria"][CRITERION] | {"threshold": threshold}
        return anchor_sets(read_plan({"criteria": {CRITERION: criterion}}), anchors)[0][CRITERION].set_id

    first = set_id(anchor("a"), anchor("b"))
    assert set_id(anchor("b"), anchor("a")) == first
    others = [
        set_id(anchor("a")),
        set_id(anchor("a", "fail"), anchor("b")),
        set_id(anchor("a"), anchor("b"), threshold=0.6),
    ]
    assert len({first, *others}) == 4
