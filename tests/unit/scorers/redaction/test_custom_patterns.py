"""Tests custom patterns: what they redact, what they keep, and which patterns are rejected."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.scoring import make_trace

from traceweir.scorers import ConfigError, read_plan
from traceweir.scorers.evaluation.network_record import network_record
from traceweir.scorers.redaction.custom_patterns import redact_custom, unusable_patterns
from traceweir.scorers.redaction.redaction import redact
from traceweir.scorers.text.patterns import compiled


@pytest.mark.parametrize(
    ("text", "patterns", "redacted"),
    [
        ("EMP-1, EMP-2", {"employee": "EMP-[0-9]+"}, "[REDACTED:employee], [REDACTED:employee]"),
        ("직원-12님", {"employee": r"직원-\d+"}, "[REDACTED:employee]님"),
        ("a b", {"first": "a", "second": "b"}, "[REDACTED:first] [REDACTED:second]"),
        ("aba", {"first": "a", "word": "[A-Z]+|[a-z]+"}, "[REDACTED:first][REDACTED:word][REDACTED:first]"),
        ("Ab", {"any": "(?i)a"}, "[REDACTED:any]b"),
        ("one\ntwo", {"line": "(?m)^two$"}, "one\n[REDACTED:line]"),
        ("x]", {"bracket": "]|x"}, "[REDACTED:bracket][REDACTED:bracket]"),
        (r"\1 \g<0>", {"digit": "[0-9]"}, r"\[REDACTED:digit] \g<[REDACTED:digit]>"),
        ("nothing here", {"employee": "EMP"}, "nothing here"),
    ],
)
def test_matches_become_tokens_of_their_kind_and_tokens_stay(
    text: str, patterns: dict[str, str], redacted: str
) -> None:
    assert redact_custom(text, patterns) == redacted


@given(
    st.lists(st.sampled_from(["a", "b", "[REDACTED:email]", "[REDACTED:", "]", ":", "ED"]), max_size=12).map("".join)
)
def test_existing_tokens_stay_unchanged(text: str) -> None:
    token = re.compile(r"\[REDACTED:email\]")
    redacted = redact_custom(text, {"one": "a", "two": "[^b]", "three": ".*:"})
    assert token.findall(redacted) == token.findall(text)


def test_a_pattern_that_would_block_a_backtracking_engine_is_fast() -> None:
    text = "a" * 100_000 + "!"
    assert redact_custom(text, {"evil": "(a+)+b", "worse": "(a|a|aa)*b"}) == text


def test_every_piece_of_a_long_text_is_redacted_and_nothing_else_changes() -> None:
    text = " ".join(f"EMP-{number} works" for number in range(5_000))
    redacted = redact_custom(text, {"employee": "EMP-[0-9]+"})
    assert redacted == " ".join(["[REDACTED:employee] works"] * 5_000)
    assert redact_custom("x" * 20_001, {"employee": "EMP"}) == "x" * 20_001


@pytest.mark.slow
def test_a_pattern_that_scans_far_ahead_from_every_match_ends_in_time() -> None:
    text = "KEY " * 50_000
    assert redact_custom(text, {"key": "KEY(?:.*;)?"}) == "[REDACTED:key] " * 50_000


def test_custom_patterns_are_applied_before_built_in_rules_also_in_keys_and_lists() -> None:
    document: JsonValue = {"EMP-1": ["EMP-2 kim@example.com", {"n": 1}]}
    assert redact(document, {"employee": "EMP-[0-9]", "mail": "kim@"}) == {
        "[REDACTED:employee]": ["[REDACTED:employee] [REDACTED:mail]example.com", {"n": 1}]
    }


def test_the_patterns_of_the_config_are_redacted_from_the_published_record() -> None:
    plan = read_plan('{"gate": {"redact": {"employee": "EMP-[0-9]+"}}}')
    record = network_record(plan, make_trace(task={"objective": "Promote EMP-4711"}), 0.9)
    assert record["task"] == {"objective": "Promote [REDACTED:employee]"}


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        ({"employee": "("}, "gate.redact.employee: RE2 does not accept the pattern: missing ): ("),
        ({"employee": "(?=a)"}, "gate.redact.employee: RE2 does not accept the pattern: invalid perl operator: (?="),
        (
            {"employee": "((a{100}){100}){100}"},
            "gate.redact.employee: RE2 does not accept the pattern: invalid repetition size: {100}",
        ),
        ({"employee": "x*"}, "gate.redact.employee: the pattern matches the empty text, and therefore everywhere"),
        ({"employee": ""}, 'gate.redact.employee: String should have at least 1 character, not ""'),
        ({"employee": 7}, "gate.redact.employee: Input should be a valid string, not 7"),
        ({"Employee id": "a"}, "String should match pattern '^[a-z][a-z0-9_]{0,39}$'"),
    ],
)
def test_an_invalid_pattern_is_reported_with_its_kind_and_reason(patterns: dict[str, JsonValue], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_plan({"gate": {"redact": patterns}})
    (said,) = refused.value.problems
    assert problem in said


@pytest.mark.slow
def test_the_patterns_of_a_config_are_compiled_up_to_a_size_together() -> None:
    large = {f"k{number}": r"(?i)(\p{Greek}|\p{L}){100}" + "x" * number for number in range(100)}
    before = compiled.cache_info().misses
    (problem,) = unusable_patterns(large)
    assert problem.startswith(": the patterns together have more than 400,000 steps")
    assert compiled.cache_info().misses - before <= 5


@pytest.mark.slow
def test_few_of_many_unusable_patterns_are_compiled() -> None:
    before = compiled.cache_info().misses
    assert len(unusable_patterns({f"k{number}": r"\pL{999}" + "x" * number for number in range(100)})) == 10
    assert compiled.cache_info().misses - before <= 10
