"""Computes the tables of docs/languages.md and of its files: the values of metrics that compare words, by language."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.figures import threshold_figure
from traceweir.scorers import read_plan
from traceweir.scorers.evaluation.languages import language_values, sentences
from traceweir.scorers.metrics.completeness import completeness

THRESHOLDS = {
    "completeness": 0.5,
    "keyword_coverage": 0.4,
    "content_similarity": 0.3,
    "response_match_score": 0.8,
}
"""The thresholds of the examples in the documentation; that of `response_match_score` is its default."""
MASTRA = ("completeness", "keyword_coverage", "content_similarity")


UNRELATED = ("Bananas are yellow.", "The library is open on Saturday.")
"""Answers to other questions."""
SHORT_QUESTIONS = {
    "What is the capital of Australia?": "The capital of Australia is Canberra.",
    "What is the price?": "The price is 20 euros.",
    "Where is my order?": "Your order is in Berlin.",
    "What is photosynthesis?": "Photosynthesis makes sugar from light.",
}
"""Short questions in English, each with a right answer."""


def value_table(compat: str | None) -> list[str]:
    """Returns a Markdown table: a line for each language, a column for each metric.

    A cell has the values of the right and the wrong answer, bold if the threshold does not hold.
    """
    criteria: dict[str, JsonValue] = {
        name: {"threshold": threshold, **({} if compat is None else {"compat": compat})}
        for name, threshold in THRESHOLDS.items()
        if compat is None or name in MASTRA
    }
    plan = read_plan({"criteria": criteria})
    titles = [f"`{metric.name}` >= {threshold_figure(metric.threshold)}" for metric in plan.metrics if metric.threshold]
    cells: dict[str, list[str]] = {language: [] for language in sentences()}
    for metric in plan.metrics:
        assert metric.scorer is not None
        assert metric.threshold is not None
        for each in language_values(metric.scorer):
            found = "/".join("none" if value is None else f"{value:.3f}" for value in (each.right, each.wrong))
            cells[each.language].append(found if each.holds(metric.threshold) else f"**{found}**")
    return [
        f"| language | {' | '.join(titles)} |",
        f"|---|{'---|' * len(titles)}",
        *(f"| {language} | {' | '.join(found)} |" for language, found in cells.items()),
    ]


def short_question_table() -> list[str]:
    """Returns a Markdown table of `completeness` for short questions in English."""
    lines = ["| English question | right answer | " + " | ".join(f'"{each}"' for each in UNRELATED) + " |"]
    lines.append("|---|---|---|---|")
    for question, right in SHORT_QUESTIONS.items():
        values = [f"{completeness(question, answer).score:.3f}" for answer in (right, *UNRELATED)]
        lines.append(f"| {' | '.join([question, *values])} |")
    return lines


def short_table() -> list[str]:
    """Returns a Markdown table of the values of `completeness` for right answers of few words."""
    lines = ["| language | question | short answer | `completeness` |", "|---|---|---|---|"]
    metric = read_plan({"criteria": {"completeness": 0.5}}).metrics[0]
    assert metric.scorer is not None
    for each in language_values(metric.scorer):
        texts = sentences()[each.language]
        value = "no value" if each.short is None else f"{each.short:.3f}"
        lines.append(f"| {each.language} | {texts['question']} | {texts['short']} | {value} |")
    return lines
