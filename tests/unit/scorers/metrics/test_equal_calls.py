"""Tests when two tool calls are equal, and what a score says where they are not."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.scoring import make_turn, scores_of

from traceweir.schemas.invocation import FunctionCall, IntermediateData, Invocation
from traceweir.schemas.reference import Reference
from traceweir.scorers import ConfigError, MissingInput, Subject, read_plan
from traceweir.scorers.evaluation.metric import metric_digest
from traceweir.scorers.metrics import call_comparison
from traceweir.scorers.metrics.argument_rules import RULES_VERSION
from traceweir.scorers.metrics.call_comparison import CallComparison, TooManyComparisonsError
from traceweir.scorers.metrics.call_matching import number_matched
from traceweir.scorers.metrics.tool_trajectory import ToolTrajectory
from traceweir.scorers.metrics.trajectory import (
    TrajectoryAnyOrderMatch,
    TrajectoryExactMatch,
    TrajectoryInOrderMatch,
    TrajectoryPrecision,
    TrajectoryRecall,
)

KOREAN = "서울"


def book(args: Any = None, answer: str | None = None, name: str = "book") -> FunctionCall:
    return FunctionCall(name=name, args=args, model_call_id=answer)


def subject_of(expected: list[FunctionCall], made: list[FunctionCall]) -> Subject:
    return Subject(invocation=make_turn(tools=made).invocation, reference=Reference(tool_uses=expected))


def rationale(expected: list[FunctionCall], made: list[FunctionCall], **options: Any) -> str:
    found = ToolTrajectory(**options).score(subject_of(expected, made))
    assert found.value == 0.0
    return found.rationale.partition("they do not match; ")[2]


EQUAL: list[tuple[Any, Any, Any]] = [
    ("subset", {"q": "a"}, {"q": "a", "page": 2}),
    ("subset", {"f": {"city": "Rome"}}, {"f": {"city": "Rome", "near": True}}),
    ("subset", None, {"q": "a"}),
    ("folded", {"q": " New  YORK\n"}, {"q": "new york"}),
    ("folded", {"q": ["Straße"]}, {"q": ["STRASSE"]}),
    ("folded", {"q": {"in": KOREAN}}, {"q": {"in": unicodedata.normalize("NFD", KOREAN)}}),
    ("nfc", {"q": KOREAN}, {"q": unicodedata.normalize("NFD", KOREAN)}),
    ("ignore", {"q": "a"}, None),
    ({"note": "ignore"}, {"q": 1, "note": "a"}, {"q": 1}),
    ({"price": {"tolerance": 0.01}}, {"price": 0.3}, {"price": 0.29}),
    ({"relative_tolerance": 0.1}, {"price": [100, {"tax": 10}]}, {"price": [91, {"tax": 11}]}),
    ({"tolerance": {"tolerance": 1}}, {"tolerance": 3}, {"tolerance": 4}),
    ({"*": "folded", "id": "exact"}, {"q": "A", "id": "B"}, {"q": "a", "id": "B"}),
    ({"tolerance": 1}, {"n": 10**400}, {"n": 10**400 + 1}),
    ({"tolerance": 0}, {"n": 1}, {"n": True}),
]
DIFFERENT: list[tuple[Any, Any, Any]] = [
    ("exact", None, {}),
    ("exact", {"q": KOREAN}, {"q": unicodedata.normalize("NFD", KOREAN)}),
    ("subset", {"q": "a", "page": 2}, {"q": "a"}),
    ("subset", {"q": [1]}, {"q": [1, 2]}),
    ("nfc", {"q": "A"}, {"q": "a"}),
    ("folded", {"Q": "a"}, {"q": "a"}),
    ("folded", {"q": "5"}, {"q": 5}),
    ({"price": {"tolerance": 0.01}}, {"price": 0.3}, {"price": 0.28}),
    ({"price": {"tolerance": 0.01}}, {"price": "0.3"}, {"price": 0.3}),
    ({"price": {"tolerance": 0.01}}, {"price": True}, {"price": 0.99}),
    ({"price": {"tolerance": 1}}, {"price": False}, {"price": True}),
    ({"price": {"tolerance": 0.01}}, {"price": 1, "day": "a"}, {"price": 1, "day": "A"}),
    ({"relative_tolerance": 0.1}, {"price": 100}, {"price": 89}),
    ({"note": "ignore"}, {"q": 1}, {"q": 1, "page": 2}),
    ({"tolerance": 1}, {"n": 2**53}, {"n": 2**53 + 2}),
]


@pytest.mark.parametrize(("rule", "expected", "made"), EQUAL)
def test_calls_are_equal_by_the_rules_of_the_tool_and_of_all_tools(rule: Any, expected: Any, made: Any) -> None:
    for name in ("book", "*"):
        comparison = CallComparison({name: rule})
        assert comparison.are_equal(book(expected), book(made))
        assert number_matched([book(expected)], [book(made)], comparison) == 1


@pytest.mark.parametrize(("rule", "expected", "made"), DIFFERENT)
def test_calls_differ_by_the_rules_of_the_tool(rule: Any, expected: Any, made: Any) -> None:
    comparison = CallComparison({"book": rule, "*": "ignore"})
    assert not comparison.are_equal(book(expected), book(made))
    assert number_matched([book(expected)], [book(made)], comparison) == 0


def test_every_metric_with_expected_calls_compares_by_the_rules() -> None:
    subject = subject_of([book({"price": 12.5})], [book({"price": 12.505})])
    for kind in (
        ToolTrajectory,
        TrajectoryExactMatch,
        TrajectoryInOrderMatch,
        TrajectoryAnyOrderMatch,
        TrajectoryPrecision,
        TrajectoryRecall,
    ):
        assert kind().score(subject).value == 0.0
        assert kind(compare_args={"book": {"price": {"tolerance": 0.01}}}).score(subject).value == 1.0


def test_a_call_that_fits_several_expected_calls_takes_the_one_that_no_other_fits() -> None:
    expected = [book({"n": 1}), book({"n": 2})]
    made = [book({"n": 1.5}), book({"n": 0.5})]
    rules = {"*": {"tolerance": 0.5}}
    assert ToolTrajectory(match_type="ANY_ORDER", compare_args=rules).score(subject_of(expected, made)).value == 1.0
    assert TrajectoryRecall(compare_args=rules).score(subject_of(expected, made)).value == 1.0


@pytest.mark.parametrize("kind", ["EXACT", "IN_ORDER"])
def test_parallel_calls_are_a_set_unless_the_metric_is_that_of_adk(kind: Any) -> None:
    first, second, third = book({"n": 1}, "m1"), book({"n": 2}, "m1"), book({"n": 3}, "m2")
    expected = [second, first, third]
    assert ToolTrajectory(match_type=kind).score(subject_of(expected, [first, second, third])).value == 1.0
    assert (
        ToolTrajectory(match_type=kind, compat="adk").score(subject_of(expected, [first, second, third])).value == 0.0
    )
    assert ToolTrajectory(match_type=kind).score(subject_of(expected, [third, first, second])).value == 0.0


async def test_calls_of_different_answers_keep_their_order_in_the_metrics_of_vertex_ai() -> None:
    plan = read_plan({"criteria": {"trajectory_exact_match": 1.0, "trajectory_in_order_match": 1.0}})
    apart = [book({"n": 1}, "m1"), book({"n": 2}, "m2")]
    together = [book({"n": 1}, "m1"), book({"n": 2}, "m1")]
    for made, value in ((apart, 0.0), (together, 1.0)):
        turn = make_turn(tools=made, reference=Reference(tool_uses=[book({"n": 2}), book({"n": 1})]))
        assert {score.value for score in await scores_of(plan, [turn])} == {value}


@pytest.mark.parametrize(
    ("expected", "made", "options", "said"),
    [
        ([book({"price": 12.5, "day": "Mon"})], [book({"price": 13, "day": "Tue"})], {},
         "expected call 1, book: the argument 'price' is 13, and not 12.5; 1 more argument differs"),
        ([book({"price": 12.5})], [book({"price": 13}), book({})], {"match_type": "ANY_ORDER"},
         "expected call 1, book: the argument 'price' is 13, and not 12.5"),
        ([book({"q": 1})], [book({})], {}, "expected call 1, book: the argument 'q' is nothing, and not 1"),
        ([book(None)], [book({})], {}, "expected call 1, book: the arguments are {}, and not no arguments"),
        ([book(), book(name="pay")], [book()], {}, "expected call 2, pay, was not made"),
        ([book()], [book(), book(name="pay")], {}, "a call of pay was made in addition"),
        ([book(), book(name="pay")], [book(name="pay"), book()], {}, "expected call 1, book, was not made at this place"),
        ([book(), book()], [book()], {"match_type": "ANY_ORDER"}, "expected call 2, book, was not made this often"),
        ([book({"a\nb": "x" * 90})], [book({"a\nb": "\x1b[31m"})], {},
         "expected call 1, book: the argument 'a\\\\nb' is \"\\u001b[31m\", and not \"" + "x" * 58 + "…"),
    ],
)  # fmt: skip
def test_the_rationale_names_what_differs(expected: Any, made: Any, options: Any, said: str) -> None:
    assert rationale(expected, made, **options) == said


def test_a_name_of_a_tool_in_a_rationale_is_printable_and_short() -> None:
    found = rationale([book(name="a\x1b\n" + "b" * 500)], [])
    assert found.isprintable()
    assert len(found) < 120


def test_arguments_that_do_not_matter_need_not_be_recorded() -> None:
    lost = Invocation(
        intermediate_data=IntermediateData(tool_uses=[book()]),
        unread=["the arguments of the call of tool 'book' are not in the spans"],
    )
    subject = Subject(invocation=lost, reference=Reference(tool_uses=[book({"n": 1})]))
    assert ToolTrajectory(compare_args={"book": "ignore"}).score(subject).value == 1.0
    with pytest.raises(MissingInput, match="the arguments"):
        ToolTrajectory(compare_args={"book": "folded"}).score(subject)


def problems(metric: str, **options: Any) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        read_plan({"criteria": {metric: {"threshold": 1, **options}}})
    return list(refused.value.problems)


@pytest.mark.parametrize(
    ("compare_args", "said"),
    [
        ({"a": "exac"}, "a: 'exac' is not a rule; did you mean 'exact'? Known: exact, folded, ignore, nfc, subset"),
        ({"a": {}}, "a: names no argument; give a rule for each argument, or one for the tool; "),
        ({"a": {"b": 3}}, "a.b: 3 is not a rule; a rule is one of exact, folded, nfc, subset, ignore, "),
        ({"a": None}, "a: null is not a rule; "),
        ({"a": {"b": {"limit": 1}}}, 'a.b: {"limit": 1} is not a rule; '),
        ({"a": {"tolerance": -1}}, "a: tolerance must be a number of at least 0, not '-1'"),
        ({"a": {"relativeTolerance": True}}, "a: relativeTolerance must be a number of at least 0, not 'True'"),
        (
            {"a": {"tolerance": "0.1"}},
            (
                "a.tolerance: '0.1' is not a rule; known: exact, folded, ignore, nfc, subset; as a tolerance of all "
                "arguments it must be a number of at least 0"
            ),
        ),
        ({"a": {"b": {"tolerance": "0.1"}}}, "a.b: tolerance must be a number of at least 0, not '0.1'"),
        ({"a\n": "b"}, "a\\n: 'b' is not a rule; "),
        (
            {"a": {"relativeTolerance": 1, "relative_tolerance": 1}},
            "a: relative_tolerance is given twice, in two spellings; keep one",
        ),
    ],
)
@pytest.mark.parametrize("metric", ["tool_trajectory_avg_score", "trajectory_recall"])
def test_a_rule_that_is_none_is_reported_with_its_place(metric: str, compare_args: Any, said: str) -> None:
    (problem,) = problems(metric, compare_args=compare_args)
    assert problem.startswith(f"criteria.{metric}.compare_args: {said}")


def test_options_that_exclude_each_other_are_refused() -> None:
    rules = {"*": "nfc"}
    (problem,) = problems("tool_trajectory_avg_score", compare_args=rules, compat="adk")
    assert problem.endswith("Google ADK has no compare_args; remove compat or compare_args")
    (problem,) = problems("trajectory_precision", compareArgs=rules, ignore_args=True)
    assert problem.endswith("so compare_args has no effect; remove one of them")


def test_equal_rules_have_one_digest_and_the_metrics_without_order_keep_theirs() -> None:
    def digest(metric: str, **options: Any) -> str:
        return read_plan({"criteria": {metric: {"threshold": 1, **options}}}).metrics[0].digest

    one, other = ({"a": {"relative_tolerance": 0.1}}, {"a": {"relativeTolerance": 0.1}})
    assert digest("trajectory_recall", compare_args=one) == digest("trajectory_recall", compareArgs=other)
    assert digest("trajectory_recall", compare_args={}) == digest("trajectory_recall")
    assert digest("trajectory_recall") == metric_digest("trajectory_recall", "1", '{"ignore_args":false}')
    assert digest("trajectory_recall", compare_args=one) != digest("trajectory_recall")


def test_the_version_of_the_rules_is_part_of_the_digest_of_a_metric_with_rules() -> None:
    rules: Any = {"*": {"tolerance": 0.01}}
    options = TrajectoryRecall(compare_args=rules).decisive_options()
    assert options == {"ignore_args": False, "compare_args": rules, "compare_args_version": RULES_VERSION}
    assert RULES_VERSION == "2"
    assert "compare_args_version" not in TrajectoryRecall().decisive_options()


@pytest.mark.slow
def test_ten_thousand_calls_are_compared_within_the_bound() -> None:
    count = 10_000
    made = [book({"n": number}, "m1") for number in range(count)]
    assert ToolTrajectory().score(subject_of(made[::-1], made)).value == 1.0
    assert ToolTrajectory(compare_args={"*": "folded"}).score(subject_of(made[::-1], made)).value == 1.0
    same = [book({"n": 1}, "m1")] * count
    assert ToolTrajectory(compare_args={"*": "subset"}).score(subject_of(same, same)).value == 1.0
    few = [book({"n": 0.5})] * 10
    assert TrajectoryPrecision(compare_args={"*": {"tolerance": 4.5}}).score(subject_of(few, made)).value == 6 / count


def test_more_pairs_than_the_bound_are_an_error_and_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_comparison, "MAX_STEPS", 10_000)
    made = [book({"n": number}) for number in range(200)]
    with pytest.raises(TooManyComparisonsError, match="more than 10,000 steps"):
        TrajectoryRecall(compare_args={"*": {"tolerance": 0.1}}).score(subject_of(made, made[::-1]))


class CountedTexts(list[Any]):
    """A list of texts that counts how often it is read."""

    read = 0

    def __iter__(self) -> Iterator[Any]:
        self.read += 1
        return super().__iter__()


@pytest.mark.parametrize("rule", ["exact", "folded", "nfc"])
def test_a_value_is_folded_once_and_not_for_each_pair(rule: str) -> None:
    texts = [CountedTexts(["É x"]) for _ in range(20)]
    calls = [FunctionCall.model_construct(name="book", args={"t": text, "n": n}) for n, text in enumerate(texts)]
    comparison = CallComparison({"book": {"t": rule, "n": {"tolerance": 0.5}}})

    assert number_matched(calls[:10], calls[10:], comparison) == 0
    # The key of the whole call reads the texts, too.
    assert max(text.read for text in texts) <= 3


KEYS = dict.fromkeys(map(str, range(10_000)), 1)
LONG: dict[str, tuple[Any, Any]] = {
    "text": (lambda number: ["x" * 500_000, number], "subset"),
    "key": (lambda number: {"x" * 500_000: number}, "subset"),
    "keys": (lambda number: KEYS | {f"last {number}": 1}, {"tolerance": 0.1}),
    "number": (lambda number: 10**4_000 + number, {"tolerance": 0.1}),
}


@pytest.mark.parametrize(
    ("value", "rule"),
    # Many keys are read before they are too many: that takes four seconds.
    [pytest.param(*each, id=name, marks=pytest.mark.large if name == "keys" else ()) for name, each in LONG.items()],
)
@pytest.mark.slow
def test_a_long_value_takes_more_steps(value: Callable[[int], Any], rule: Any) -> None:
    made = [book({"n": value(number)}) for number in range(100)]
    expected = [book({"n": value(number)}) for number in range(100, 200)]

    with pytest.raises(TooManyComparisonsError):
        number_matched(expected, made, CallComparison({"book": rule}))
