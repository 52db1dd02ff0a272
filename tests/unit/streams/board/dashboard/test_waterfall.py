"""The waterfall of a session shows what began when, how long it took, and what failed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pytest
from tests.support.dashboard_site import session_of
from tests.support.scoring import NOW

from traceweir.schemas.session import Session
from traceweir.streams.board.dashboard.page import waterfall
from traceweir.streams.board.dashboard.page.waterfall import Bar, waterfalls_of


def session(**changes: Any) -> Session:
    return Session.model_validate_json(orjson.dumps({**session_of(1, NOW, is_new=False), **changes}))


def event(event_type: str, second: float, **fields: Any) -> dict[str, Any]:
    moment = (NOW + timedelta(seconds=second)).isoformat()
    return {"type": event_type, "session_id": "s", "invocation_id": "1", "occurred_at": moment, **fields}


def test_calls_have_their_beginning_their_duration_and_their_failure() -> None:
    spans, steps = waterfalls_of(session())

    assert [(bar.kind, bar.name, round(bar.begins_s, 3), bar.is_failed) for bar in spans.bars] == [
        ("invocation", "1", 0.0, False),
        ("tool", "find_trains", 0.2, False),
        ("tool", "book_seats", 1.2, True),
        ("tool", "book_seats", 2.2, False),
        ("model", "gemini-2.5-flash", 3.5, False),
    ]
    assert [bar.duration_s and round(bar.duration_s, 3) for bar in spans.bars] == [3.9, 0.7, 0.7, 0.7, None]
    assert [(bar.name, bar.begins_s, bar.duration_s) for bar in steps.bars] == [
        ("thought", 0.0, None),
        ("find_trains", 0.0, 0.7),
        ("error recovery", 0.7, None),
    ]


def test_parallel_calls_without_an_id_are_answered_in_their_order() -> None:
    events = [
        event("invocation.started", 0),
        event("tool.called", 1, name="a"),
        event("tool.called", 1, name="a"),
        event("tool.returned", 2, name="a"),
        event("tool.returned", 4, name="a", error="no"),
        event("tool.returned", 5, name="b"),
    ]
    (spans,) = waterfalls_of(session(events=events, traces=[]))

    assert [(bar.name, bar.duration_s, bar.is_failed) for bar in spans.bars[1:]] == [
        ("a", 1.0, False),
        ("a", 3.0, True),
        ("b", None, False),
    ]


def test_a_session_without_a_known_time_has_no_waterfall() -> None:
    unknown = [{**event("invocation.started", 0), "occurred_at": "1970-01-01T00:00:00Z"}]

    assert waterfalls_of(session(events=unknown, traces=[])) == []


def test_every_bar_is_within_the_width() -> None:
    for fall in waterfalls_of(session()):
        for bar in fall.bars:
            assert 0 <= fall.left(bar) < 100
            assert fall.width(bar) > 0
            assert fall.left(bar) + fall.width(bar) <= 100


def test_a_waterfall_at_one_moment_is_drawn() -> None:
    (spans,) = waterfalls_of(session(events=[event("invocation.started", 0)], traces=[]))

    assert spans.total_s == 0
    assert (spans.left(spans.bars[0]), spans.width(spans.bars[0])) == (0.0, 0.6)


def test_what_is_left_out_of_a_long_waterfall_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waterfall, "MAX_BARS", 2)

    spans, steps = waterfalls_of(session())

    assert (len(spans.bars), spans.left_out, len(steps.bars), steps.left_out) == (2, 3, 2, 1)
    assert isinstance(spans.bars[0], Bar)
