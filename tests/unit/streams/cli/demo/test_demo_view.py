"""Tests the view of the demo, which shows hostile text escaped, and the summary, which names every deviation."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import pytest
from rich.console import Console
from tests.support.results import make_score
from tests.support.scoring import make_session

from traceweir.schemas.dead_letter import DeadLetter
from traceweir.schemas.turns import turns_of
from traceweir.streams.cli.demo.commands import show_summary, show_totals
from traceweir.streams.cli.demo.fleet import build_fleet
from traceweir.streams.cli.demo.ledger import expected_counts, meaning_of
from traceweir.streams.cli.demo.observed import Equation, Observed, SessionSeen
from traceweir.streams.cli.demo.outlet import Schedule
from traceweir.streams.cli.demo.sessions import Emission
from traceweir.streams.cli.demo.summary import Redaction, Summary
from traceweir.streams.cli.demo.view import LineView, Moment, screen_of

HOSTILE = "[bold red]x[/] [link=file:///]y[/link] \x1b]0;owned\x07\x1b[2J\r\u202e"
MOMENT = Moment(1.0, "the agents work", 10, 20)


def seen_with_hostile_texts() -> Observed:
    seen = Observed()
    session = SessionSeen(HOSTILE, HOSTILE, {"m": HOSTILE}, {}, 0.5, accepted=False, reasons=(HOSTILE,))
    session.dimensions = dict.fromkeys(("complexity", "novelty", "tool_diversity", "outcome_confidence"), 0.5)
    seen.sessions["s"] = session
    seen.latest_letters.append(DeadLetter(HOSTILE, HOSTILE, "assemble", "t", 0, 0, None, None))
    seen.news.append(HOSTILE)
    return seen


def rendered(render: object, *, terminal: bool) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=400, color_system=None)
    console.print(render)
    return out.getvalue()


def test_the_live_view_shows_markup_and_control_characters_as_text() -> None:
    text = rendered(screen_of(MOMENT, seen_with_hostile_texts(), 400, 40), terminal=True)
    assert "[bold red]x[/]" in text
    assert "\\x1b]0;owned\\x07\\x1b[2J\\r\\u202e" in text
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(text)


def test_the_line_view_shows_markup_and_control_characters_as_text() -> None:
    out = io.StringIO()
    LineView(Console(file=out, width=400)).update(MOMENT, seen_with_hostile_texts())
    assert "[bold red]x[/] [link=file:///]y[/link] \\x1b]0;owned\\x07" in out.getvalue()
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(out.getvalue())


def test_the_line_view_limits_lines_per_second_and_counts_the_omitted_lines() -> None:
    out, seen = io.StringIO(), Observed()
    view = LineView(Console(file=out, width=400))
    seen.news.extend(f"news {number}" for number in range(10))
    view.update(MOMENT, seen)
    seen.news.append("later")
    view.update(Moment(2.0, MOMENT.phase, 10, 20), seen)
    lines = [line.split("sent  ")[1] for line in out.getvalue().splitlines()]
    assert lines == ["the agents work", "news 0", "later  (and 9 more)"]


def test_the_live_view_shows_dimensions_as_bars_beside_the_decision() -> None:
    seen = seen_with_hostile_texts()
    text = rendered(screen_of(MOMENT, seen, 400, 40), terminal=False)
    assert text.count("███··· 0.500") == 4
    assert "0.500" in text


def summary(**changes: object) -> Summary:
    fields: dict[str, object] = {
        "seed": 1,
        "took_s": 30.0,
        "worker_log": None,
        "equations": [Equation("records consumed", 3, {"joined": 2, "duplicate": 1})],
        "expected": {"sessions": 2},
        "observed": {"sessions": 2},
        "redactions": [Redaction("kp:trace:s", published=True, secrets=4, found=())],
        "late_s": 0.1,
    }
    return Summary(**(fields | changes))  # type: ignore[arg-type]  # each test changes one field


def test_a_summary_without_deviations_has_exit_code_0() -> None:
    assert (summary().problems, summary().exit_code) == ([], 0)


@pytest.mark.parametrize(
    ("late_s", "is_the_machine"), [(0.3, False), (5.1, True)], ids=["on time", "later than sessions wait"]
)
def test_a_deviation_names_a_machine_without_time(late_s: float, *, is_the_machine: bool) -> None:
    found = summary(observed={"sessions": 3}, late_s=late_s).problems

    assert [f"a record was sent {late_s} s late" in each for each in found] == [False, True][: 1 + is_the_machine]


def test_lateness_alone_is_no_deviation() -> None:
    assert summary(late_s=30.0).problems == []


def test_the_schedule_measures_how_late_a_record_was_taken() -> None:
    times = iter((0.0, 1.0, 2.5, 3.0))
    schedule = Schedule(lambda: next(times))

    taken = [one.due_s for one in schedule.on_time([due(1.0), due(2.0), due(3.0)]) if one is not None]

    assert taken == [1.0, 2.0, 3.0]
    assert schedule.latest_s == 0.5


def due(seconds: float) -> Emission:
    return Emission(seconds, "traces", 0, None, None)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"expected": {"sessions": 3}}, "sessions: 3 expected, 2 observed"),
        ({"observed": {"sessions": 2, "network": 1}}, "network: 0 expected, 1 observed"),
        (
            {"equations": [Equation("records consumed", 4, {"joined": 2, "duplicate": 1})]},
            "does not add up: records consumed = joined + duplicate: 4 ≠ 2 + 1",
        ),
        ({"worker_log": "the log\x1b"}, "not everything came out in time"),
        ({"redactions": [Redaction("kp:trace:s", False, 4, ())]}, "kp:trace:s was not published"),
        ({"redactions": [Redaction("kp:trace:s", True, 4, ("a\x1b",))]}, "kp:trace:s was published with a\\x1b"),
    ],
)
def test_every_deviation_is_reported_with_exit_code_1(changes: dict[str, object], problem: str) -> None:
    wrong = summary(**changes)
    assert (wrong.problems, wrong.exit_code) == ([problem], 1)
    assert json.loads(json.dumps(wrong.document()))["problems"] == [problem]
    out = io.StringIO()
    show_summary(wrong, Console(file=out, width=400))
    assert problem in out.getvalue()
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("width", [90, 120, 200])
def test_the_live_view_shows_the_decision_at_every_usual_terminal_width(width: int) -> None:
    seen = Observed()
    bars = dict.fromkeys(("complexity", "novelty", "tool_diversity", "outcome_confidence"), 0.5)
    criteria = {"tool_trajectory_avg_score": "PASSED", "response_match_score": "FAILED"}
    seen.sessions["s"] = SessionSeen("demo-conflict-a", "customer_service", criteria, bars, 0.8, accepted=True)
    out = io.StringIO()
    Console(file=out, width=width).print(screen_of(MOMENT, seen, width, 30))
    assert all(text in out.getvalue() for text in ("0.800", "PASS", "FAIL", "accepted", "███···"))


def test_superseded_revisions_are_a_term_of_the_equations_without_applicable_pairs() -> None:
    seen = Observed(metrics=1)
    session = make_session()
    for revision in range(20):
        seen.closed(session.model_copy(update={"revision": revision}).model_dump_json(by_alias=True).encode())
    for revision in (0, 19):
        for _ in range(len(turns_of(session)) + 1):
            seen.result(make_score(session.session_id, "asks", revision=revision).model_dump_json().encode())
    seen.counted("assemble", 0, b'{"closed": 20, "opened": 1, "reopened": 19}')
    seen.counted("score", 0, b'{"scored": 2, "superseded": 18, "consumed": 20}')
    found = {each.whole: each for each in seen.equations(0)}
    assert str(found["segments closed"]).endswith("20 = 2 + 18 + 0")
    assert found["segments closed"].holds
    assert found["applicable pairs"].holds


@pytest.mark.parametrize(
    ("width", "height", "least"), [(80, 24, 5), (80, 50, 32), (92, 50, 32), (120, 50, 32), (140, 50, 32)]
)
def test_the_live_view_fits_its_terminal_and_uses_its_height(width: int, height: int, least: int) -> None:
    seen = Observed()
    dimensions = dict.fromkeys(("complexity", "novelty", "tool_diversity", "outcome_confidence"), 0.5)
    criteria = {"tool_trajectory_avg_score": "PASSED", "response_match_score": "FAILED"}
    for number in range(99):
        name = f"demo-session-{number:02d}"
        seen.sessions[name] = SessionSeen(name, "travel", criteria, dimensions, 0.1, False, ("below_threshold",))
    seen.latest_letters.extend(DeadLetter("late", "x" * 300, "assemble", "t", 0, 0, None, None) for _ in range(6))
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(screen_of(MOMENT, seen, width, height))

    lines = out.getvalue().splitlines()

    assert max(map(len, lines)) <= width
    assert len(lines) < height
    rows = [line for line in lines if "demo-session-" in line]
    assert len(rows) >= least
    assert [row for row in rows if "below_threshold" not in row or "PASS" not in row or "0.100" not in row] == []


def test_an_interrupted_demo_shows_the_counts_so_far() -> None:
    out = io.StringIO()
    show_totals({"records sent": 12, "sessions": 3}, Console(file=out, width=80), seed=1, as_json=False)
    assert [line.strip("│ ").split("│") for line in out.getvalue().splitlines() if "records sent" in line] == [
        ["records sent ", "       12"]
    ]
    assert "sessions" in out.getvalue()


def test_the_line_view_says_how_far_the_demo_is_when_nothing_is_new() -> None:
    out, seen = io.StringIO(), Observed()
    view = LineView(Console(file=out, width=400))
    for tenths in range(0, 100, 5):
        view.update(Moment(tenths / 10, "the worker starts", 4, 20), seen)
    lines = [line.split("sent  ")[1] for line in out.getvalue().splitlines()]
    assert lines == ["the worker starts", *["the worker starts: 0 sessions closed, 0 scores"] * 3]


def test_the_table_explains_every_count_that_a_demo_expects() -> None:
    fleet = build_fleet(1, 8.0, datetime(2026, 3, 1, 12, tzinfo=UTC))
    expected = expected_counts(fleet.emissions, fleet.outcomes)
    assert [name for name in expected if not meaning_of(name)] == []
    summary = Summary(
        seed=1,
        took_s=1.0,
        worker_log=None,
        equations=[],
        expected=expected,
        observed=expected,
        redactions=[],
        late_s=0.0,
    )
    out = io.StringIO()
    show_summary(summary, Console(file=out, width=200))
    assert "records that were sent twice, on purpose" in out.getvalue()
