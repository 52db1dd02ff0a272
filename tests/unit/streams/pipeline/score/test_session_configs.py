"""The configs of a session are checked beside the event loop, also those that are read while others are checked."""

from __future__ import annotations

import json
from typing import Any, cast

from tests.support.scoring import NOW

from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.pipeline.score.config_spans import ConfigSpans
from traceweir.streams.pipeline.score.followed_configs import FollowedConfigs
from traceweir.streams.pipeline.score.session_configs import SessionConfigs
from traceweir.streams.scoring.configs.log import ConfigLog
from traceweir.streams.scoring.configs.records import config_id
from traceweir.streams.scoring.configs.selectors import Configs
from traceweir.streams.scoring.configs.topic_record import parsed
from traceweir.streams.scoring.configs.usable import usable_plan
from traceweir.streams.scoring.sessions.result import Scoring
from traceweir.streams.tools.testing.memory import Message

FIRST: dict[str, Any] = {"criteria": {"latency": {}}}
SECOND: dict[str, Any] = {"criteria": {"response_match_score": 0.3}}
BOTH: Configs = (("*", config_id(FIRST)), ("travel", config_id(SECOND)))


def version(offset: int, config: dict[str, Any]) -> Message:
    value = {
        "envelope": 1,
        "selector": "*",
        "version": offset + 1,
        "digest": None,
        "config": config,
        "pushed_at": NOW.isoformat(),
    }
    return Message("configs", 0, offset, 0, f"version:*:{offset + 1}".encode(), json.dumps(value).encode())


async def test_a_config_that_is_read_during_the_check_of_another_is_checked_in_the_same_way() -> None:
    """The version of the second one is read while the first is checked."""
    beside, all_checks = list[str](), list[bytes]()

    def check_plan(document: bytes) -> Plan:
        all_checks.append(document)
        return usable_plan(document, read_plan({}))

    log = ConfigLog(check_plan)
    log.read(parsed(version(0, FIRST)))
    log.settle()

    async def check(name: str) -> None:
        beside.append(name)
        if len(beside) == 1:
            log.read(parsed(version(1, SECOND)))
        log.check(name)

    found: list[Configs] = []
    scoring = cast("Scoring", object())

    def scoring_by(configs: Configs) -> Scoring:
        found.append(configs)
        return scoring

    spans = ConfigSpans()
    spans.begin(0, BOTH, 0)
    configs = SessionConfigs(0, cast("Scoring", None), FollowedConfigs(log, scoring_by, check))
    configs.load({key: row for key, row in spans.rows() if row is not None})

    assert await configs.scoring_at(0) is scoring
    assert found == [BOTH]
    assert beside == [config_id(FIRST), config_id(SECOND)]
    assert len(all_checks) == 2
