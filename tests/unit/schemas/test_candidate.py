"""Tests that the decisive part of a candidate, cut from its JSON, equals the JSON of the decisive fields."""

from __future__ import annotations

import json
from datetime import timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.paths import ROOT
from tests.support.scoring import NOW

from traceweir.schemas.candidate import Candidate, Embedding, Verdict, changing_part, decisive_part
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.testing import trace

GOLDEN = ROOT / "tests" / "golden" / "1.0" / "Candidate.json"
PIECES = (',"scope":', ',"embedding":', ',"occurred_at":', '\\"', '"', "\\", "}", "{", ",", "Ｔ", "\x00", "word")
TEXT = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
INPUT = st.dictionaries(
    st.sampled_from(("scope", "embedding", "trace", "a")), TEXT | st.none() | st.lists(TEXT), max_size=3
)


def candidate(text: str = "a", given: dict[str, Any] | None = None, *, embedded: bool = True) -> Candidate:
    step = {"step_id": 0, "type": "tool_call", "content": text, "tool": {"name": text}, "input": given or {}}
    document = trace(text, text, domain=text, task={"objective": text}, steps=[step])
    return Candidate(
        candidate_id="c",
        session_id=text,
        segment=1,
        revision=2,
        scope=text,
        trace=ReasoningTrace.model_validate_json(orjson.dumps(document)),
        required={
            text: Verdict(status="PASSED"),
            "other": Verdict(status="NOT_EVALUATED", not_evaluated_because="error"),
        },
        embedding=Embedding.of(text, np.ones(3, np.float32)) if embedded else None,
        novelty_missing=None if embedded else text,
        occurred_at=NOW,
        labels={"a": "b", "scope": text, "embedding": text},
        agent_name=text,
    )


@given(TEXT, INPUT, st.booleans())
def test_the_decisive_part_equals_the_json_of_the_decisive_fields(
    text: str, given: dict[str, Any], embedded: bool
) -> None:
    record = candidate(text, given, embedded=embedded)
    decisive_fields = record.model_dump_json(by_alias=True, exclude_unset=True, include={"scope", "trace", "required"})
    assert decisive_part(record.wire()) == decisive_fields.encode()


def test_dimensions_do_not_change_the_decisive_part() -> None:
    record = candidate()
    other = record.model_copy(update={"agent_version": "2", "labels": {"embedding": "null", "scope": "{"}})
    assert decisive_part(other.wire()) == decisive_part(record.wire())


@given(TEXT, INPUT, st.booleans())
def test_a_candidate_changes_with_its_dimensions_and_not_with_its_time_and_version(
    text: str, given: dict[str, Any], embedded: bool
) -> None:
    record = candidate(text, given, embedded=embedded)
    later = record.model_copy(update={"revision": 3, "occurred_at": NOW + timedelta(seconds=1)})
    assert changing_part(later.wire()) == changing_part(record.wire())
    for change in ({"agent_name": f"{text}2"}, {"labels": {"a": text}}, {"agent_version": text}):
        assert changing_part(record.model_copy(update=change).wire()) != changing_part(record.wire())


@given(TEXT, INPUT)
def test_only_rules_that_are_not_the_default_change_a_candidate(text: str, given: dict[str, Any]) -> None:
    plain = candidate(text, given)
    rules = json.dumps({"digest": text, "gate_rules": {"é": '"}'}})
    ruled = plain.model_copy(update={"gate_rules": rules})
    assert changing_part(ruled.wire(), default_rules=rules) == changing_part(plain.wire())
    assert changing_part(plain.wire(), default_rules=rules) == changing_part(plain.wire())
    assert changing_part(ruled.wire(), default_rules="{}") == changing_part(ruled.wire())
    assert changing_part(ruled.wire()) != changing_part(plain.wire())


def test_the_digest_of_a_candidate_equals_the_digest_in_rows_of_earlier_versions() -> None:
    golden = Candidate.model_validate_json(GOLDEN.read_bytes())
    digest = blake2b(changing_part(golden.wire()), digest_size=16).hexdigest()
    assert digest == "52a519ac52214fd95ed51f12a281febc"


def test_a_document_without_the_decisive_fields_is_rejected() -> None:
    with pytest.raises(ValueError, match="not found"):
        decisive_part(b'{"trace":{}}')
