"""Tells for which languages a threshold of a metric that compares words can hold, by sentences in ten languages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from traceweir.schemas.figures import threshold_figure
from traceweir.schemas.invocation import Content, Invocation
from traceweir.schemas.reference import Reference
from traceweir.scorers.base import Measurement, MissingInput, Scorer, Subject
from traceweir.scorers.evaluation.metric import Metric
from traceweir.scorers.evaluation.registry import BUILT_IN

JUDGED_INSTEAD: Mapping[str, str] = {
    "completeness": "relevance_to_query",
    "keyword_coverage": "relevance_to_query",
    "content_similarity": "relevance_to_query",
    "response_match_score": "final_response_match_v2",
}
"""The metrics that compare words, each with the nearest criterion that asks a judge."""


@dataclass(frozen=True, slots=True)
class LanguageValues:
    """Holds the values of a metric for the sentences of a language; None where the metric has no value."""

    language: str
    script: str
    right: float | None
    """The value of a right answer in a full sentence."""
    wrong: float | None
    """The value of an answer to another question, or for a metric with a reference of one that says the opposite."""
    short: float | None
    """The value of a right answer of few words."""

    def holds(self, threshold: float) -> bool:
        """Returns whether a threshold tells the right answer from the wrong one."""
        return self.right is not None and self.right >= threshold and (self.wrong is None or self.wrong < threshold)


def language_values(scorer: Scorer) -> list[LanguageValues]:
    """Returns the values of a scorer of one of the metrics of `JUDGED_INSTEAD`, by language."""
    of_reference = scorer.__class__ is BUILT_IN["response_match_score"]
    right, wrong = ("same", "opposite") if of_reference else ("full", "unrelated")
    return [
        LanguageValues(language, texts["script"], *(_value(scorer, texts, name) for name in (right, wrong, "short")))
        for language, texts in sentences().items()
    ]


def language_warnings(metrics: Sequence[Metric]) -> list[str]:
    """Returns a sentence for each metric whose threshold does not hold in some languages.

    Nobody knows the languages of a config, so nothing is said of a threshold that fails in one of the ten only, nor of
    one that every answer reaches.

    >>> from traceweir.scorers.evaluation.plan import read_plan
    >>> for warning in language_warnings(read_plan({"criteria": {"keyword_coverage": 0.6}}).metrics):
    ...     print(warning.partition(";")[0])
    keyword_coverage compares words, not meaning: >= 0.6 does not tell right answers from wrong ones in our sentences of Russian, Hindi
    """
    return [
        f"{metric.name} compares words, not meaning: >= {threshold_figure(metric.threshold)} does not tell right "
        f"answers from wrong ones in our sentences of {_listed(weak)}; see docs/languages.md, or use "
        f"{JUDGED_INSTEAD[metric.name]}"
        for metric in metrics
        if metric.name in JUDGED_INSTEAD and metric.scorer is not None and metric.threshold
        if len(weak := [each.language for each in language_values(metric.scorer) if not each.holds(metric.threshold)])
        > 1
    ]


def language_warning(metric: str, threshold: float | None, details: Mapping[str, object]) -> str | None:
    """Returns why a score says little: its text is in a script for which the threshold does not hold; None if it does.

    Nothing is said of Latin letters, which many languages have.

    Args:
        metric: The name of the metric.
        threshold: The threshold of the score.
        details: The details of the score; `script` and `compat` say how it was measured.

    >>> language_warning("response_match_score", 0.8, {"script": "Hangul"})
    'In Korean, this threshold does not tell right answers from wrong ones: final_response_match_v2 can.'
    """
    script = details.get("script")
    if metric not in JUDGED_INSTEAD or not threshold or not isinstance(script, str) or script == "Latin":
        return None
    compat = "mastra" if details.get("compat") == "mastra" else None
    weak = [each.language for each in _values(metric, compat) if each.script == script and not each.holds(threshold)]
    if not weak:
        return None
    return (
        f"In {' and '.join(weak)}, this threshold does not tell right answers from wrong ones: "
        f"{JUDGED_INSTEAD[metric]} can."
    )


def _listed(weak: Sequence[str]) -> str:
    every = len(sentences())
    return f"all {every} languages that were tried" if len(weak) == every else ", ".join(weak)


@cache
def sentences() -> Mapping[str, Mapping[str, str]]:
    """Returns the sentences of each language by their part, and its script.

    The parts are a question, an answer to the point in a full sentence (`full`), a right answer of few words (`short`)
    and an answer to another question (`unrelated`); and an expected answer, a right answer in other words or forms
    (`same`) and one that says the opposite (`opposite`).
    """
    found: Mapping[str, Mapping[str, str]] = json.loads(
        (files(__package__) / "language_sentences.json").read_text("utf-8")
    )
    return found


@cache
def _values(metric: str, compat: str | None) -> Sequence[LanguageValues]:
    return language_values(BUILT_IN[metric].model_validate({} if compat is None else {"compat": compat}))


def _value(scorer: Scorer, texts: Mapping[str, str], answer: str) -> float | None:
    invocation = Invocation(user_content=Content.of(texts["question"]), final_response=Content.of(texts[answer]))
    reference = Reference(final_response=Content.of(texts["expected"]))
    try:
        measured = scorer.score(Subject(invocation=invocation, reference=reference))
    except MissingInput:
        return None
    # Only texts of many thousands of characters are measured elsewhere.
    return measured.value if isinstance(measured, Measurement) else None
