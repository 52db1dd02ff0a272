"""`traceweir diff` compares files of scores, checks bounds, and shows hostile text as text."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from tests.support.cli_inputs import EVENT, WriteInput
from tests.support.command_line import Ended, Run
from tests.support.results import make_score

from traceweir.schemas.score import Cost, Score

HOSTILE = "[red]\x1b[31m\u202e<img src=x>`| [a](http://x) @all #1 **b**\n# c"


def lines(*scores: Score) -> list[bytes]:
    return [score.wire() for score in scores]


@pytest.fixture
def before(write_input: WriteInput) -> str:
    return write_input("before.jsonl", *lines(*(make_score(f"s{number}", value=0.8) for number in range(4))))


@pytest.fixture
def after(write_input: WriteInput) -> str:
    values = (0.8, 0.7, 0.1, 0.8)
    return write_input(
        "after.jsonl", *lines(*(make_score(f"s{number}", value=value) for number, value in enumerate(values)))
    )


def told(ended: Ended) -> str:
    """Returns stderr without the frame and the line breaks of a usage error."""
    return " ".join(ended.err.replace("│", " ").split())


def test_the_tables_show_means_difference_interval_and_flips(before: str, after: str, run: Run) -> None:
    ended = run("diff", before, after)
    assert (ended.code, ended.err) == (0, "")
    rows = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "response_match_score session paired 4 0.800 0.600 -0.200 -0.736 to +0.336 0.320 0.320" in rows
    assert "s2 session 0.800 PASSED to 0.100 FAILED (needs >= 0.75)" in rows
    assert rows.index("s2 session 0.800 PASSED to 0.100 FAILED (needs >= 0.75)") < rows.index(
        "s1 session 0.800 PASSED to 0.700 FAILED (needs >= 0.75)"
    )


def test_values_of_different_judges_are_named_with_their_judges(write_input: WriteInput, run: Run) -> None:
    sides = [
        write_input(f"{judge[:3]}.jsonl", *lines(*(make_score(f"s{n}", value=1.0, judge=judge) for n in range(2))))
        for judge in ("one", "two\x1b[2J")
    ]

    ended = run("diff", *sides)
    selected = run("diff", *sides, "--where", "judge=one")

    assert (
        "warning: response_match_score (session) has values of different judges, so a difference can be theirs: "
        "base one (2); challenger two\\x1b[2J (2)"
    ) in " ".join(ended.out.split())
    assert "two.jsonl: has no results" in told(selected)


def test_json_is_one_document_with_both_rationales(before: str, after: str, run: Run) -> None:
    ended = run("diff", before, after, "--json", "--flips", "1")
    found = json.loads(ended.out)
    (metric,) = found["metrics"]
    assert metric["value"]["difference"] == pytest.approx(-0.2)
    assert metric["verdicts"]["flips"][0]["base"]["rationale"] == "words"
    assert metric["verdicts"]["flips_left_out"] == 1
    assert ended.out.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "code", "verdict"),
    [
        ("--max-drop response_match_score=0.21", 0, "every bound is kept"),
        ("--max-drop response_match_score=0.19", 1, "1 of 1 bound broken"),
        ("--max-drop response_match_score=0.21 --bound-on interval", 1, "1 of 1 bound broken"),
        ("--max-drop response_match_score=0.74 --bound-on interval", 0, "every bound is kept"),
        ("--max-rise response_match_score=0", 0, "every bound is kept"),
        ("--max-flips response_match_score=2", 0, "every bound is kept"),
        ("--max-flips response_match_score=1", 1, "1 of 1 bound broken"),
        (
            "--max-flips response_match_score=2 --max-drop response_match_score=0 --max-drop response_match_score=1",
            1,
            "1 of 3 bounds broken",
        ),
    ],
)
def test_the_exit_code_says_whether_every_bound_is_kept(
    options: str, code: int, verdict: str, before: str, after: str, run: Run
) -> None:
    ended = run("diff", before, after, *options.split())
    assert (ended.code, ended.out.splitlines()[-1]) == (code, verdict)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--max-drop", "response_match=1"], "did you mean 'response_match_score'"),
        (["--max-drop", "response_match_score"], "write METRIC=LIMIT, where LIMIT is a number of at least 0"),
        (["--max-drop", "response_match_score=-1"], "write METRIC=LIMIT"),
        (["--max-drop", "response_match_score=nan"], "write METRIC=LIMIT"),
        (["--max-flips", "response_match_score=1.5"], "a whole number"),
        (["--bound-on", "median"], "choose from mean, interval"),
        (["--json", "--markdown"], "exclude each other"),
        (["--level", "turn"], "'turn' is not a level; choose from invocation, trace, session"),
        (["--where", "agent=1"], "write NAME=VALUE, where NAME is app_name"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_a_wrong_option_is_refused_with_the_rule(
    options: list[str], said: str, before: str, after: str, run: Run
) -> None:
    ended = run("diff", before, after, *options)
    assert (ended.code, ended.out) == (2, "")
    assert said in told(ended)


@pytest.mark.parametrize(
    ("side", "said"),
    [
        ("results?since=1d&until=2d", "the range of time is empty"),
        ("results?since=tomorrow", "'tomorrow' is not a time"),
        ("results?since=1d&since=2d", "since is given twice"),
        ("results?version=1", "'version': select by metric, level, since, until, app_name"),
        ("results?agent_version=", "write NAME=VALUE"),
        ("results?agent_version", "write NAME=VALUE"),
        ("results?labels.=1", "select by"),
        ("results?level=turn", "choose from invocation, trace, session"),
        ("results.shadow.", "cannot name a shadow"),
        ("results.shadow.a/b", "cannot name a shadow"),
        ("before.jsonl?since=1d", "a file has no time of writing"),
        ("?since=1d", "a file has no time of writing"),
        ("?app_name=a", "name a file"),
        ("missing.jsonl", "missing.jsonl: cannot be opened (No such file or directory)"),
    ],
)
def test_a_side_that_cannot_be_read_is_refused_with_the_rule(side: str, said: str, after: str, run: Run) -> None:
    ended = run("diff", side, after)
    assert (ended.code, ended.out) == (2, "")
    assert said in told(ended)


def test_standard_input_can_be_one_side_only(
    before: str, after: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for base in ("-", "-?metric=response_match_score"):
        assert "standard input can be one side only" in told(run("diff", "--", base, "-"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(after).read_bytes())))
    assert "standard input" in run("diff", before, "-").out


def test_lines_that_are_not_scores_are_named_counted_and_cost_no_neighbour(
    before: str, write_input: WriteInput, run: Run
) -> None:
    bad = [
        b"\xff",
        b"{}",
        b"[1]",
        b"7",
        b"null",
        b"{" * 500,
        make_score().wire().replace(b'"level":"session"', b'"level":"?"'),
    ]
    good = lines(*(make_score(f"s{number}", value=0.8) for number in range(4)))
    mixed = write_input("mixed.jsonl", good[0], *bad, *good[1:])

    ended = run("diff", before, mixed, "--json")

    found = json.loads(ended.out)
    assert (found["challenger"]["unusable"], found["challenger"]["results"]) == (7, 4)
    assert ended.code == 1
    assert f"{mixed}: document 3: is not a score: result_id: Field required" in ended.err
    assert "2 further documents omitted, because not a score" in ended.err


def test_a_number_that_cannot_be_compared_costs_its_line_only(before: str, write_input: WriteInput, run: Run) -> None:
    mixed = write_input("mixed.jsonl", *lines(make_score("s0", value=0.8), make_score("s1", value=1e200)))
    ended = run("diff", before, mixed)
    assert ended.code == 1
    assert "document 2: value: 1e+200 is more than 1e+100" in ended.err


def test_sides_without_a_common_metric_are_refused_with_what_each_has(
    before: str, write_input: WriteInput, run: Run
) -> None:
    other = write_input("other.jsonl", *lines(make_score(metric="completeness")))
    ended = run("diff", before, other)
    assert (ended.code, ended.out) == (1, "")
    assert "before.jsonl: 4 results of 4 sessions: response_match_score (session) 4" in ended.err
    assert "other.jsonl: 1 result of 1 session: completeness (session) 1" in ended.err


@pytest.mark.parametrize("content", [b"", b"\n", b"[]"])
def test_an_empty_file_is_named(content: bytes, before: str, write_input: WriteInput, run: Run) -> None:
    ended = run("diff", before, write_input("empty.jsonl", content))
    assert ended.code == 1
    assert "empty.jsonl: has no results" in ended.err


def test_a_file_of_events_is_named_as_such(before: str, write_input: WriteInput, run: Run) -> None:
    ended = run("diff", before, write_input("events.jsonl", EVENT))
    assert ended.code == 2
    assert "Scores come from `traceweir score --json`" in ended.err


def test_sides_of_one_file_are_selected_by_dimension_and_metric(write_input: WriteInput, run: Run) -> None:
    file = write_input(
        "scores.jsonl",
        *lines(*(make_score(f"a{number}", value=0.2, agent_version="1.0 & more") for number in range(3))),
        *lines(*(make_score(f"b{number}", value=0.6, agent_version="2", labels={"team": "x"}) for number in range(3))),
        *lines(make_score("b0", "completeness", 0.1, agent_version="2"), make_score("c", value=0.9)),
    )
    ended = run(
        *("diff", f"{file}?agent_version=1.0%20%26%20more", f"{file}?labels.team=x&agent_version=2&agent_version=3"),
        *("--json", "--metric", "response_match_score"),
    )
    found = json.loads(ended.out)
    (metric,) = found["metrics"]
    assert metric["pairing"] == "unpaired"
    assert metric["value"]["difference"] == pytest.approx(0.4)
    assert found["only_in_challenger"] == []


def test_scores_are_selected_by_level(write_input: WriteInput, run: Run) -> None:
    scores = lines(make_score("a"), make_score("a", level="invocation", invocation_id="i"))
    file = write_input("scores.jsonl", *scores)
    for selected in (("--level", "session"), ()):
        found = json.loads(run("diff", file + ("" if selected else "?level=session"), file, "--json", *selected).out)
        assert [each["level"] for each in found["metrics"]] == ["session"]


def test_where_selects_on_both_sides(write_input: WriteInput, run: Run) -> None:
    scores = lines(make_score("a", app_name="shop"), make_score("b", app_name="bank"))
    file = write_input("scores.jsonl", *scores)
    found = json.loads(run("diff", file, file, "--json", "--where", "app_name=shop").out)
    assert (found["base"]["results"], found["challenger"]["results"]) == (1, 1)
    neither = run("diff", f"{file}?app_name=bank", file, "--where", "app_name=shop")
    assert "has no results" in neither.err


@pytest.fixture
def hostile(write_input: WriteInput) -> tuple[str, str]:
    def score(value: float) -> Score:
        return make_score(HOSTILE, HOSTILE, value, rationale=HOSTILE, cost=Cost(usd=0.1))

    return write_input("one.jsonl", *lines(score(1.0))), write_input("two.jsonl", *lines(score(0.1)))


def test_hostile_text_is_escaped(hostile: tuple[str, str], run: Run) -> None:
    ended = run("diff", *hostile)
    assert "\x1b" not in ended.out
    assert "\u202e" not in ended.out
    assert r"[red]\x1b[31m\u202e<img src=x>" in ended.out


def test_hostile_text_is_escaped_in_json_and_means_the_same(hostile: tuple[str, str], run: Run) -> None:
    ended = run("diff", *hostile, "--json")
    assert ended.out.removesuffix("\n").isprintable()
    assert json.loads(ended.out)["metrics"][0]["verdicts"]["flips"][0]["base"]["rationale"] == HOSTILE


def test_hostile_text_is_escaped_on_a_terminal(
    hostile: tuple[str, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    ended = run("diff", *hostile)
    assert "\x1b[31m" not in ended.out
    assert "\u202e" not in ended.out


def test_hostile_text_is_no_markup_in_markdown(hostile: tuple[str, str], run: Run) -> None:
    ended = run("diff", *hostile, "--markdown", "--max-flips", f"{HOSTILE}=0")
    assert ended.code == 1
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(ended.out)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= {"text", "code_inline", "softbreak", "strong_open", "strong_close"}
    assert not [child.content for child in inline if child.type == "text" and "img" in child.content]
    allowed = (
        "heading",
        "paragraph",
        "inline",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "bullet_list",
        "list_item",
    )
    assert {token.type.removesuffix("_open").removesuffix("_close") for token in tokens} <= set(allowed)
    assert widths(tokens) == {6, 10, 8, 7}


def widths(tokens: list[Any]) -> set[int]:
    """Returns the numbers of cells of the rows."""
    found, count = set(), 0
    for token in tokens:
        if token.type == "tr_open":
            count = 0
        count += token.type in ("th_open", "td_open")
        if token.type == "tr_close":
            found.add(count)
    return found


def test_the_gate_and_values_that_are_missing_have_tables_of_their_own(write_input: WriteInput, run: Run) -> None:
    def side(name: str, decision: float, value: float | None) -> str:
        gate = make_score("s", "gate", decision, level="trace", trace_id="t", threshold=1.0)
        return write_input(name, *lines(gate, make_score("s", value=value), make_score("r", value=0.5)))

    ended = run("diff", side("a.jsonl", 1.0, 0.9), side("b.jsonl", 0.0, None))

    rows = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert "accepted 1 of 1 0 of 1 100.0% to 0.0% - 1 0 1.000" in rows
    assert "response_match_score session 0 1 missing_input 1 0" in rows
    assert "flips of gate (trace)" in rows


def test_the_name_of_a_label_can_have_an_equals_sign(write_input: WriteInput, run: Run) -> None:
    file = write_input("labels.jsonl", *lines(make_score("a", labels={"a=b": "c"})))
    ended = run("diff", f"{file}?labels.a%3Db=c", f"{file}?labels.a%3Db=c", "--json")
    assert [each["pairs"] for each in json.loads(ended.out)["metrics"]] == [1]


def test_sides_without_a_common_session_are_compared_as_independent_samples_with_a_warning(
    before: str, write_input: WriteInput, run: Run
) -> None:
    others = write_input("others.jsonl", *lines(*(make_score(f"t{number}", value=0.5) for number in range(4))))
    warning = "warning: no session is on both sides, so the two sides are compared as independent samples"
    assert f"\n  {warning}\n" in run("diff", before, others).out
    assert f"\n- `{warning}`\n" in run("diff", before, others, "--markdown").out
    assert json.loads(run("diff", before, others, "--json").out)["common_sessions"] == 0

    assert warning not in run("diff", before, before).out
    assert json.loads(run("diff", before, before, "--json").out)["common_sessions"] == 4
