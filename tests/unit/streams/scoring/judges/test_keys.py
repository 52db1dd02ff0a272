"""Judges without a key are known before the first question."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from traceweir.scorers import read_plan
from traceweir.streams.scoring.judges.keys import without_key


def config(model: str) -> Any:
    return {"criteria": {"safety_v1": {"threshold": 1, "judge_model_options": {"judge_model": model}}}}


@pytest.mark.parametrize(
    ("model", "environment", "lacks"),
    [
        ("openai/gpt-4o", {}, "OPENAI_API_KEY or TRACEWEIR_JUDGE_API_KEY"),
        ("openai/gpt-4o", {"OPENAI_API_KEY": ""}, "OPENAI_API_KEY or TRACEWEIR_JUDGE_API_KEY"),
        ("openai/gpt-4o", {"OPENAI_API_KEY": "k"}, None),
        ("gemini-2.5-flash", {"GOOGLE_API_KEY": "k"}, None),
        ("bedrock/any", {}, None),
    ],
)
def test_a_judge_lacks_a_key_if_no_variable_of_its_provider_is_set(
    model: str, environment: Mapping[str, str], lacks: str | None
) -> None:
    plan = read_plan(config(model))
    assert without_key(plan, environment, has_key=False) == ({} if lacks is None else {model: lacks})
    assert without_key(plan, environment, has_key=True) == {}
