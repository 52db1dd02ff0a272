"""Reads the criteria of one's own: entries of `criteria` with a prompt text."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TypeGuard

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.scorers.evaluation.config_problems import option_names, shown, validated
from traceweir.scorers.evaluation.metric import Metric, digest_of
from traceweir.scorers.evaluation.registry import known_metrics
from traceweir.scorers.evaluation.thresholds import threshold_of
from traceweir.scorers.spelling import MAX_NAME_CHARS

PROMPT = "prompt"
"""The option that makes an entry of `criteria` a criterion of one's own."""
_FIELDS_ONLY = {"name", "prompt_text"}
"""Fields of the scorer that are no options: the key of the criterion, and the field of the option `prompt`."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")


def is_own(criterion: JsonValue) -> TypeGuard[JsonObject]:
    """Returns whether an entry of `criteria` is a criterion of one's own."""
    return isinstance(criterion, dict) and PROMPT in criterion


def misspelt_prompt(name: str, criterion: JsonObject) -> str | None:
    """Returns the problem of an entry without a known metric's name that has nearly the option `prompt`; None for others."""
    if name in known_metrics():
        return None
    near = next(
        (key for key in criterion if get_close_matches(key[:MAX_NAME_CHARS].lower(), [PROMPT], cutoff=0.7)), None
    )
    if near is None:
        return None
    return (
        f"{name}.{near}: there is no such option; did you mean {PROMPT!r}, which makes {name} a criterion of your own?"
    )


def own_metric(name: str, criterion: JsonObject, problems: list[str]) -> Metric | None:
    """Returns the metric of a criterion of one's own; None if it has problems, which are appended to `problems`."""
    # Judged scorers take longer to import than a small file to score.
    from traceweir.scorers.judged.prompt_criterion import LEVELS

    options = dict(criterion)
    threshold = options.pop("threshold", None)
    level = options.pop("level", "invocation")
    if name in known_metrics():
        problems.append(f"{name}: is a metric that Traceweir knows; give a criterion with a prompt another name")
    elif not _NAME.fullmatch(name):
        problems.append(
            f"{name}: a criterion with a prompt has a name of at most 100 of a-z, 0-9 and _, a letter first"
        )
    if "name" in options:
        problems.append(f"{name}.name: is no option; the key of the criterion is its name")
    kind = LEVELS.get(level) if isinstance(level, str) else None
    if kind is None:
        problems.append(f"{name}.level: must be {' or '.join(LEVELS)}, not {shown(level)}")
    if problems or kind is None:
        return None
    known = option_names(kind) - _FIELDS_ONLY | {"threshold", "level", "when", "settle_s"}
    scorer = validated(kind, {**options, "name": name}, name, problems, known)
    if scorer is None:
        return None
    return Metric(name, threshold_of(name, threshold, scorer.value_range, problems), scorer, digest_of(name, scorer))
