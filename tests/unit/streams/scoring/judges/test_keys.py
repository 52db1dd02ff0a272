"""Judges without a key are known before the first question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from traceweir.scorers import read_plan
from traceweir.streams.scoring.judges.keys import KEYS, without_key


def config(model: str) -> Any:
    return {"criteria": {"safety_v1": {"threshold": 1, "judge_model_options": {"judge_model": model}}}}


@pytest.mark.parametrize(
    ("model", "environment", "lacks"),
    [
        ("xai/grok", {}, "XAI_API_KEY or TRACEWEIR_JUDGE_API_KEY"),
        ("xai/grok", {"XAI_API_KEY": ""}, "XAI_API_KEY or TRACEWEIR_JUDGE_API_KEY"),
        ("openai/gpt-4o", {"OPENAI_API_KEY": "k"}, None),
        ("gemini-2.5-flash", {"GOOGLE_API_KEY": "k"}, None),
        ("bedrock/any", {}, None),
        ("cohere/a", {"CO_API_KEY": "k"}, None),
        ("cohere_chat/a", {}, "COHERE_API_KEY or CO_API_KEY or TRACEWEIR_JUDGE_API_KEY"),
        ("openrouter/a/b", {"OR_API_KEY": "k"}, None),
        ("azure/a", {"AZURE_OPENAI_API_KEY": "k"}, None),
        ("together_ai/a", {"TOGETHER_AI_TOKEN": "k"}, None),
        ("together_ai/a", {"TOGETHER_AI_API_KEY": "k"}, None),
        ("anthropic/a", {"ANTHROPIC_AUTH_TOKEN": "k"}, None),
        ("mistral-large", {"MISTRAL_AZURE_API_KEY": "k"}, None),
        ("gpt-4o", {"OPENAI_IDENTITY_TOKEN_FILE": "/var/run/token"}, None),
    ],
)
def test_a_judge_lacks_a_key_if_no_variable_of_its_provider_is_set(
    model: str, environment: Mapping[str, str], lacks: str | None
) -> None:
    plan = read_plan(config(model))
    assert without_key(plan, environment, has_key=False) == ({} if lacks is None else {model: lacks})
    assert without_key(plan, environment, has_key=True) == {}


@pytest.mark.parametrize(
    ("model", "lacks"),
    [
        ("gpt-4o", None),
        ("qwen", None),
        ("gemini-2.5-flash", "GEMINI_API_KEY or GOOGLE_API_KEY or TRACEWEIR_JUDGE_API_KEY"),
    ],
)
def test_a_server_of_ones_own_needs_no_key_where_it_speaks_the_api_of_openai(model: str, lacks: str | None) -> None:
    found = without_key(read_plan(config(model)), {}, has_key=False, api_base="http://127.0.0.1:8000/v1")
    assert found == ({} if lacks is None else {model: lacks})


def alternatives() -> Iterator[list[str]]:
    """Yields the variables with keys that litellm's source reads one after another, joined by `or`."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent
    providers = [file for name in ("chat/*.py", "common_utils.py") for file in folder.glob(f"llms/*/{name}")]
    for file in (folder / "main.py", folder / "litellm_core_utils/get_llm_provider_logic.py", *providers):
        text = re.sub(r"#.*", "", file.read_text("utf-8"))
        one = r'get_secret(?:_str)?\(\s*"\w+"\s*\)'
        for chain in re.finditer(rf"{one}(?:\s*or\s+(?:{one}|[\w.]+))*", text):
            yield re.findall(r'"(\w+_(?:KEY|TOKEN))"', chain.group())


@pytest.mark.slow
@pytest.mark.xdist_group("litellm")
def test_each_variable_that_litellm_takes_in_place_of_a_known_one_is_known() -> None:
    unknown = {
        provider: sorted(set(names) - set(known))
        for provider, known in KEYS.items()
        for names in alternatives()
        if set(names) & set(known) and set(names) - set(known)
    }
    assert not unknown
