"""Tests that whatever crashes, each session has scores of one config, and later sessions never have an earlier one."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.examples import examples

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.testing import Flow, HeldScoring, event, instant

CONFIGS: list[dict[str, Any]] = [
    {"criteria": {"tool_call_accuracy": {"expected_tool": "find", "threshold": number / 10}}} for number in range(9)
]
"""Config 0 is that of the worker's file; the others are pushed in their order."""
DIGESTS = {read_plan(config).digest: number for number, config in enumerate(CONFIGS)}

ACTIONS = ("push", "send", "send", "read", "finish one", "finish last", "cut", "commit", "crash", "tick")


class Story:
    """Plays actions on the stage score alone, with sessions in the order of their offsets."""

    def __init__(self) -> None:
        self.flow = Flow(read_plan(CONFIGS[0]), stages=("score",), hold=HeldScoring)
        assert isinstance(self.flow.scoring, HeldScoring)
        self.held = self.flow.scoring
        self.sent = self.pushed = 0
        self.cut: Any = None

    async def play(self, action: str) -> None:
        flow = self.flow
        if action == "push" and self.pushed + 1 < len(CONFIGS):
            self.pushed += 1
            flow.push_config(CONFIGS[self.pushed], version=self.pushed)
        elif action == "send":
            flow.send(flow.topics.sessions, session(self.sent), str(self.sent).encode())
            self.sent += 1
        elif action == "read":
            await flow.take(flow.topics.sessions, 3)
            await flow.run_scoring()
        elif action.startswith("finish") and self.held.waiting:
            self.held.release(self.held.waiting[0 if action == "finish one" else -1])
            await flow.run_scoring()
        elif action == "cut" and self.cut is None:
            self.cut = flow.cut()
        elif action == "commit" and self.cut is not None:
            flow.commit(self.cut)
            self.cut = None
        elif action == "crash":
            self.cut = None  # what was cut and not committed is lost
            flow.crash()
        elif action == "tick":
            flow.pass_time(1)
            flow.tick()

    async def end(self) -> None:
        """Lets the flow finish all sessions."""
        for action in ("commit", *["read"] * (self.sent + 1)):
            await self.play(action)
        while self.held.waiting:
            await self.play("finish one")
            await self.play("read")
        self.flow.checkpoint()


def session(number: int) -> dict[str, Any]:
    return {
        "session_id": str(number),
        "segment": 0,
        "revision": 0,
        "closed_because": "idle",
        "first_record_at": instant(0),
        "last_record_at": instant(1),
        "events": [event("tool.called", str(number), event_id="1")],
        "traces": [],
    }


async def scored(actions: Sequence[str]) -> tuple[Story, dict[int, list[int]]]:
    """Returns the numbers of the configs of the committed scores, by session."""
    story = Story()
    for action in actions:
        await story.play(action)
    await story.end()
    found: dict[int, list[int]] = defaultdict(list)
    for score in story.flow.results():
        found[int(score["session_id"])].append(DIGESTS[score["config_digest"]])
    return story, found


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(ACTIONS), max_size=60))
def test_each_session_is_scored_once_and_the_configs_follow_the_offsets(actions: list[str]) -> None:
    story, found = asyncio.run(scored(actions))
    assert sorted(found) == list(range(story.sent))
    by_offset = [found[number] for number in sorted(found)]
    assert all(len(set(numbers)) == 1 for numbers in by_offset)
    assert len({(each["result_id"], each["revision"]) for each in story.flow.results()}) == len(story.flow.results())
    assert [numbers[0] for numbers in by_offset] == sorted(numbers[0] for numbers in by_offset)
