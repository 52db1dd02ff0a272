"""Chooses the sampling parameters of a question, and recognises those that a model refuses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.schemas.judge_config import JudgeConfig
from traceweir.schemas.sampling import Sampling
from traceweir.scorers.judge import Question

LITELLMS_PARAMETERS = frozenset(Sampling.model_fields) - {"max_tokens", "top_k"}
"""Parameters that litellm leaves out where it does not know that a provider takes them."""
_REFUSING_STATUSES = (400, 422)
_SEARCHED_CHARS = 300
"""Characters of a provider's message that are searched: what follows can repeat the question."""
_VALUES = re.compile(r"must be|may only|greater than|less than|at least|at most", re.IGNORECASE)
"""Words of a message about a wrong value, which a parameter of another name can have caused."""
_REASONING = ("thinking", "reasoning_effort")
_NAMED_AS = {
    "stop": r"[\"'`]stop[\"'`]|stop_?sequences",
    "thinking": r"thinking|budget_?tokens",
}
"""What a message contains that names a parameter, where this is not the parameter's name as a word."""


class RefusedParameter(Exception):  # noqa: N818  # an outcome that the caller handles
    """A model refuses a sampling parameter."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def sampling_for(question: Question, config: JudgeConfig, refused: Collection[str] = ()) -> JsonObject:
    """Returns the sampling parameters that are sent with a question, in litellm's names.

    Those of the criterion take precedence over those of the judge section. A question that is asked once has the
    temperature 0, unless a parameter says otherwise: with reasoning, providers take no other temperature than theirs.

    Args:
        question: The question.
        config: The judge section.
        refused: Parameters that the model has refused.

    >>> config = JudgeConfig(options={"m": {"seed": 7, "temperature": 1}})
    >>> question = Question(metric="m", version="1", model="m", prompt="Is it?", sampling={"temperature": 0.5})
    >>> sampling_for(question, config, refused=["seed"])
    {'temperature': 0.5, 'max_tokens': 8192}
    """
    options: JsonObject = {**config.sampling_of(question.model), **question.sampling}
    if question.is_single and not any(name in options for name in ("temperature", *_REASONING)):
        options["temperature"] = 0
    wanted = options.get("max_tokens")
    kept: JsonObject = {name: value for name, value in options.items() if name not in refused}
    longest = config.max_output_tokens
    return kept | {"max_tokens": min(wanted, longest) if isinstance(wanted, int) else longest}


def refused_parameter(error: BaseException, sampling: Mapping[str, JsonValue]) -> str | None:
    """Returns the parameter that an error of litellm or of a provider says the model does not take; None if it names none.

    The maximum length of an answer is always sent, because the budget rests on it.
    """
    status = getattr(error, "status_code", None)
    if status not in _REFUSING_STATUSES and type(error).__name__ != "UnsupportedParamsError":
        return None
    message = str(error)[:_SEARCHED_CHARS]
    for name in sampling:
        spelled = _NAMED_AS.get(name, rf"\b{name.replace('_', '_?')}\b")
        if name != "max_tokens" and re.search(spelled, message, re.IGNORECASE):
            # Without its budget of reasoning, a question would be another one.
            return None if name == "thinking" and _VALUES.search(message) else name
    return None
