"""The story of `traceweir up --demo`: its records are what the headlines say, and its judge follows the script."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.support.demo_sessions import sessions_of

from traceweir.schemas.trace import ReasoningTrace
from traceweir.schemas.turns import Turn, turns_of
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.cli.demo.scripted_judge import scripted_judge
from traceweir.streams.cli.demo.sessions import Emission
from traceweir.streams.cli.demo.story import (
    APP,
    HISTORY_MINUTES,
    JUDGE,
    OUTAGE_MINUTES,
    OUTAGE_REF,
    SECRETS,
    WORSE_AT_MINUTE,
    WORSE_VERSION,
    config,
    headlines,
    history,
    live_session,
)
from traceweir.streams.cli.demo.texts import domains

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVASION = domains()[-1].evasion
COMPLETE = {
    "type": "object",
    "properties": {"complete": {"type": "string", "enum": ["yes", "no"]}, "turns": {"type": "array"}},
}


@pytest.fixture(scope="module")
def records() -> list[Emission]:
    return history(NOW, 7)


@pytest.fixture(scope="module")
def sessions(records: Sequence[Emission]) -> list[tuple[float, Turn]]:
    """Returns when each session began, in minutes from now, and its turn."""
    begins: dict[str, float] = {}
    for one in records:
        begins.setdefault(one.session, one.due_s / 60)
    return [(begins[each.name], turns_of(each.document())[0]) for each in sessions_of(records)]


def test_the_history_is_in_the_order_of_its_times_and_ends_before_now(records: Sequence[Emission]) -> None:
    times = [one.due_s for one in records]
    assert times == sorted(times)
    assert -60 * HISTORY_MINUTES <= times[0] < times[-1] < 0
    assert all(one.ahead_s == one.due_s for one in records)


def test_every_session_says_how_many_records_it_has_and_has_one_turn_of_one_case(records: Sequence[Emission]) -> None:
    found = sessions_of(records)
    assert len(found) == 6 * HISTORY_MINUTES
    for each in found:
        ended = each.events[-1]
        assert ended.type == "session.ended"
        assert ended.expects is not None
        assert (ended.expects.events, ended.expects.traces) == (len(each.events), len(each.traces))
        (turn,) = turns_of(each.document())
        assert turn.app_name == APP
        assert "{" not in f"{turn.invocation.user_content} {turn.invocation.final_response}".replace("Content(", "")


def test_the_answer_is_about_the_booking_or_the_place_of_the_question(sessions: Sequence[tuple[float, Turn]]) -> None:
    for _, turn in sessions:
        question, answer = texts(turn)
        shared = set(question.replace("?", " ").split()) & set(answer.replace(".", " ").split())
        assert answer == EVASION or any(word[0].isupper() and word not in ("I", "Yes") for word in shared), (
            question,
            answer,
        )


def test_the_worse_version_comes_at_the_minute_that_the_headline_names(sessions: Sequence[tuple[float, Turn]]) -> None:
    begins: dict[str, list[float]] = defaultdict(list)
    evading: dict[str, Counter[bool]] = defaultdict(Counter)
    for minute, turn in sessions:
        version = turn.dimensions.agent_version or ""
        begins[version].append(minute)
        evading[version][texts(turn)[1] == EVASION] += 1
    shares = {version: counts[True] / counts.total() for version, counts in evading.items()}
    assert set(begins) == {"1.8", "1.9", WORSE_VERSION}
    assert WORSE_AT_MINUTE <= min(begins[WORSE_VERSION]) < WORSE_AT_MINUTE + 1
    assert all(max(each) > -5 for each in begins.values())
    assert shares.pop(WORSE_VERSION) > 0.4
    assert max(shares.values()) < 0.15
    (headline,) = [each for each in headlines(NOW, judged=True) if "is worse" in each]
    assert headline.startswith("11:40 UTC: version 2.0")


def test_the_bookings_of_the_outage_are_known_by_their_numbers(records: Sequence[Emission]) -> None:
    first, last = OUTAGE_MINUTES
    begins: dict[str, float] = {}
    for one in records:
        begins.setdefault(one.session, one.due_s / 60)
    marked = {one.session for one in records if f"{OUTAGE_REF}-".encode() in (one.value or b"")}
    assert marked
    assert all(first <= begins[name] < last for name in marked)


def test_one_trace_has_the_secrets_and_three_records_cannot_be_read(records: Sequence[Emission]) -> None:
    traces = [one for one in records if one.topic == "traces"]
    assert [all(secret.encode() in (one.value or b"") for secret in SECRETS) for one in traces].count(True) == 1
    assert sorted(one.fate for one in records if one.fate != "joined") == ["empty", "not_json", "not_json"]
    for one in traces:
        ReasoningTrace.model_validate_json(one.value or b"")


def test_a_live_session_ends_now_and_the_next_one_is_another(records: Sequence[Emission]) -> None:
    first, second = live_session(NOW, 7, 0), live_session(NOW, 7, 1)
    assert all(-10 < one.due_s <= 0 for one in first)
    assert {one.session for one in first}.isdisjoint(one.session for one in second)
    assert len(sessions_of(first)) == 1


@pytest.mark.parametrize("judged", [True, False])
def test_the_configs_can_be_used_and_the_pushed_one_is_stricter(judged: bool) -> None:
    before, after = (read_plan(config(judged=judged, max_tool_calls=calls)) for calls in (3, 2))
    thresholds = [{each.name: each.threshold for each in plan.metrics} for plan in (before, after)]
    assert [each["max_tool_calls"] for each in thresholds] == [3, 2]
    assert before.digest != after.digest
    assert bool(before.judged) is judged


def ask(url: str, session: str, schema: Mapping[str, Any] = COMPLETE) -> Any:
    question = {
        "model": JUDGE,
        "messages": [{"role": "system", "content": "Judge."}, {"role": "user", "content": session}],
        "response_format": {"type": "json_schema", "json_schema": {"schema": schema}},
    }
    request = urllib.request.Request(f"{url}/chat/completions", orjson.dumps(question), method="POST")
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(json.loads(answer.read())["choices"][0]["message"]["content"])


def test_the_judge_finds_evasions_and_is_down_for_the_sessions_of_the_outage() -> None:
    with scripted_judge() as url:
        assert url.startswith("http://127.0.0.1:")
        assert ask(url, "The ticket costs 40 euros.") == {"complete": "yes", "turns": []}
        assert ask(url, EVASION) == {"complete": "no", "turns": []}
        with pytest.raises(urllib.error.HTTPError, match="503"):
            ask(url, f"Booking {OUTAGE_REF}-1234 is moved.")
    with pytest.raises(urllib.error.URLError):
        ask(url, "The server has ended.")


@pytest.mark.parametrize("body", [b"no JSON", b"{}", b'{"messages": []}', b"[1]"])
def test_the_judge_refuses_what_is_no_question(body: bytes) -> None:
    with scripted_judge() as url, pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(urllib.request.Request(url, body, method="POST"), timeout=20)


def texts(turn: Turn) -> tuple[str, str]:
    question, answer = turn.invocation.user_content, turn.invocation.final_response
    assert question is not None
    assert answer is not None
    return question.text, answer.text
