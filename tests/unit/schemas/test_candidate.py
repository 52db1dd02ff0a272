"""Tests that the digest of a candidate changes with what the gate's scores depend on, and with nothing else."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.paths import ROOT
from tests.support.scoring import NOW

from traceweir.schemas.candidate import Candidate, Embedding, Verdict
from traceweir.schemas.trace import ReasoningTrace
from traceweir.streams.testing import trace

pytestmark = pytest.mark.slow

GOLDEN = ROOT / "tests" / "golden" / "1.0" / "Candidate.json"
PIECES = ('"', "\\", "}", "{", ",", "Ｔ", "\x00", "word")
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
def test_neither_version_nor_time_nor_embedding_changes_the_digest(
    text: str, given: dict[str, Any], embedded: bool
) -> None:
    record = candidate(text, given, embedded=embedded)
    version = {"candidate_id": "d", "segment": 2, "revision": 3, "attempt": 1}
    change = {"occurred_at": NOW + timedelta(seconds=1), "embedding": None, "novelty_missing": "embedder_error"}
    later = record.model_copy(update=version | change)
    assert later.digest() == record.digest()


@given(TEXT, INPUT)
def test_whatever_else_a_score_of_the_gate_depends_on_changes_the_digest(text: str, given: dict[str, Any]) -> None:
    record = candidate(text, given)
    changes: list[dict[str, Any]] = [
        {"agent_name": f"{text}2"},
        {"labels": {"a": text}},
        {"agent_version": text},
        {"scope": f"{text}2"},
        {"required": {text: Verdict(status="FAILED")}},
        {"trace": record.trace.model_copy(update={"source_skill": f"{text}2"})},
        {"gate_rules": {"digest": text}},
    ]
    digests = {record.digest(), *(record.model_copy(update=change).digest() for change in changes)}
    assert len(digests) == 1 + len(changes)


@given(TEXT, INPUT)
def test_without_rules_the_digest_is_that_of_a_candidate_that_has_none(text: str, given: dict[str, Any]) -> None:
    plain = candidate(text, given)
    ruled = plain.model_copy(update={"gate_rules": {"digest": text, "gate": {"threshold": 0.9}}})
    assert ruled.digest(with_rules=False) == plain.digest() != ruled.digest()


def test_the_digest_of_a_candidate_is_that_of_stored_rows() -> None:
    golden = Candidate.model_validate_json(GOLDEN.read_bytes())
    assert golden.digest().hex() == "52a519ac52214fd95ed51f12a281febc"
