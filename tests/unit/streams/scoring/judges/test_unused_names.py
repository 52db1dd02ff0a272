"""An entry of the judge section for a model that nobody asks is named, with the name that was probably meant."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.judged import judged_plan

from traceweir.scorers import read_plan
from traceweir.streams.scoring.judges.unused_names import unused_names


def found(model: str, api_base: str | None = None, **judge: Any) -> list[str]:
    criterion: Any = {"threshold": 1, "judge_model_options": {"judge_model": model}}
    return unused_names(read_plan({"criteria": {"safety_v1": criterion}, "judge": judge}), api_base)


@pytest.mark.parametrize(
    ("model", "judge", "nearest"),
    [
        ("gemini-2.5-flash", {}, "gemini/gemini-2.5-flash"),
        ("gpt-4o-mini", {}, "openai/gpt-4o-mini"),
        ("judge", {"models": {"judge": "azure/gpt-4o-mini"}}, "azure/gpt-4o-mini"),
    ],
)
def test_a_window_by_the_name_in_the_criteria_is_named_with_the_name_of_litellm(
    model: str, judge: Any, nearest: str
) -> None:
    [sentence] = found(model, **judge, window_tokens={model: 32_768})
    assert sentence == (
        f"judge.window_tokens.{model} has no effect: no criterion asks this model, and the key is litellm's name of the "
        f"model; did you mean {nearest!r}? Known: {nearest}"
    )
    assert not found(model, **judge, window_tokens={nearest: 32_768})


def test_the_address_of_a_server_decides_the_name_of_a_model_of_unknown_provider() -> None:
    [sentence] = found("qwen", "http://127.0.0.1:8000/v1", window_tokens={"qwen": 32_768})
    assert "did you mean 'openai/qwen'?" in sentence
    # Where a config is checked, the address of the workers is not known.
    assert not found("qwen", window_tokens={"qwen": 32_768, "openai/qwen": 32_768})


def test_sampling_parameters_by_the_name_of_litellm_are_named_with_the_name_in_the_criteria() -> None:
    [sentence] = found("gemini-2.5-flash", options={"gemini/gemini-2.5-flash": {"seed": 7}, "gemini-2.5-flash": {}})
    assert sentence.startswith("judge.options.gemini/gemini-2.5-flash has no effect: no criterion asks this model")
    assert sentence.endswith(
        "the name of the model in the criteria; did you mean 'gemini-2.5-flash'? Known: gemini-2.5-flash"
    )


def test_a_misspelled_name_is_named_with_the_nearest_and_control_characters_have_no_effect() -> None:
    [sentence] = found("openai/qwen-72b", window_tokens={"openai/qwen-27b": 32_768})
    assert "did you mean 'openai/qwen-72b'?" in sentence
    [sentence] = found("openai/a", models={"b\x1b[2J": "openai/b"})
    assert "\x1b" not in sentence


def test_names_of_a_fallback_are_asked_and_a_plugin_can_ask_any_model() -> None:
    judge: Any = {"fallback": {"openai/a": ["b"]}, "window_tokens": {"openai/b": 32_768}, "options": {"b": {"seed": 1}}}
    assert not found("openai/a", "http://127.0.0.1:8000/v1", **judge)
    assert not unused_names(judged_plan(window_tokens={"openai/any": 32_768}))
