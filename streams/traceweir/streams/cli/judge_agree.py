"""Runs `traceweir judge agree`, and prints how far a judge agrees with labelled cases."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.scorers.databricks_names import short_name
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.labelled_cases import CasesError, LabelledCase, labelled_cases, read_cases
from traceweir.streams.base.statistics.rate_intervals import Interval
from traceweir.streams.cli.errors import FAILED, UNUSABLE
from traceweir.streams.cli.judge_plan import chosen_criteria, judging_of, passing_value, plan_of
from traceweir.streams.cli.judge_unasked import Unasked, complain_of_unasked
from traceweir.streams.cli.rows import print_figures
from traceweir.streams.cli.terminal import complain, progress_bar
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.judge_agreement import Agreement, QuestionsEstimate, Rate, by_language
from traceweir.streams.lab.judge_check import NOT_ASKED, JudgedCase, JudgedCases, judge_cases
from traceweir.streams.scoring.judges.models import ANSWER_TOKENS

MAX_NAMED_CASES = 12
MAX_PROBLEM_CHARACTERS = 300
_NOTHING = "-"
"""Stands for a figure that does not exist."""


@dataclass(frozen=True, slots=True)
class _Asked:
    scorer: JudgedScorer
    cases: Sequence[LabelledCase]


@dataclass(frozen=True, slots=True)
class _Answered:
    scorer: JudgedScorer
    judged: JudgedCases
    agreement: Agreement

    @property
    def is_unasked(self) -> bool:
        """Whether there is no verdict because the judge could not be asked."""
        return self.agreement.agreement is None and NOT_ASKED.issuperset(self.agreement.without_verdict)

    def wrong(self, *, passed: bool) -> list[str]:
        return [
            each.case.id for each in self.judged.cases if each.passes is passed and each.case.must_pass is not passed
        ]


def run_agree(
    criteria: Sequence[str],
    config: Path | None,
    model: str | None,
    language: str | None,
    cases: Path | None,
    *,
    only_estimate: bool,
    as_json: bool,
) -> int:
    """Asks the judge about labelled cases, prints the figures, and returns the exit code.

    Args:
        criteria: Names of criteria; empty: all of the config, or all that ask a judge.
        config: The evaluation config; None: every criterion with its default options.
        model: The model that is asked without a config; None: the default model.
        language: The language of the cases; None: all.
        cases: A file with cases of the only criterion; None: the packaged cases.
        only_estimate: Print what it will cost, and ask nothing.
        as_json: Print JSON lines.

    Raises:
        ConfigError: the config cannot be used.
        InputError: the config has no such criterion, the file has no cases that can be used, or no case is in the language.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailableError: the [judge] extra is not installed.
    """
    plan = plan_of(config, model)
    chosen = chosen_criteria(plan, criteria)
    asked = [_Asked(scorer, labelled_cases(scorer) if cases is None else _cases_of(cases)) for scorer in chosen]
    for each in asked:
        if not each.cases:
            complain(
                f"{each.scorer.metric}: has no labelled cases, because a plugin defines it; give some with --cases"
            )
    without_cases = any(not each.cases for each in asked)
    asked = [each for each in _in_language(asked, language) if each.cases]
    try:
        answered = asyncio.run(_agree(plan, asked, only_estimate=only_estimate))
    except CasesError as error:
        place = "" if cases is None else f"{cases}: "
        raise InputError("\n".join(f"{place}{line}" for line in str(error).splitlines())) from None
    if only_estimate:
        return 0
    if as_json:
        for found in answered:
            sys.stdout.write(json.dumps(_document(found), ensure_ascii=False) + "\n")
    elif answered:
        _print_tables(answered)
    unasked = [found for found in answered if found.is_unasked]
    for found in answered:
        if not found.is_unasked:
            _complain_of_missing(found)
    complain_of_unasked(
        Unasked(found.scorer.metric, found.scorer.judge_model, found.judged.problem) for found in unasked
    )
    if without_cases or any(found.agreement.agreement is None and not found.is_unasked for found in answered):
        return FAILED
    return UNUSABLE if unasked else 0


def _cases_of(path: Path) -> list[LabelledCase]:
    try:
        return read_cases(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8; save it as UTF-8") from None
    except CasesError as error:
        raise InputError("\n".join(f"{path}: {line}" for line in str(error).splitlines())) from None


def _in_language(asked: Sequence[_Asked], language: str | None) -> list[_Asked]:
    if language is None:
        return list(asked)
    found = [_Asked(each.scorer, [case for case in each.cases if case.language == language]) for each in asked]
    if not any(each.cases for each in found):
        known = sorted({printable(case.language) for each in asked for case in each.cases})
        raise InputError(f"--language {language}: no case has it; the cases have: {', '.join(known) or 'none'}")
    return found


async def _agree(plan: Plan, asked: Sequence[_Asked], *, only_estimate: bool) -> list[_Answered]:
    with judging_of(plan, with_fallback=False) as judging:
        estimate = QuestionsEstimate(judging)
        for each in asked:
            await estimate.add(each.scorer, each.cases)
        text = _estimate_text(estimate, asked)
        if only_estimate:
            sys.stdout.write(text + "\n")
            return []
        complain(text)
        answered = []
        total = sum(len(each.cases) for each in asked)
        done = 0
        with progress_bar("asking about cases") as advance:

            def count(found: JudgedCase) -> None:
                nonlocal done
                done += 1
                advance(done, total)

            for each in asked:
                judged = await judge_cases(
                    each.scorer,
                    each.cases,
                    judging.session(),
                    passes_from=passing_value(plan, each.scorer),
                    judged=count,
                )
                answered.append(_Answered(each.scorer, judged, Agreement.of(judged.cases)))
        return answered


def _estimate_text(estimate: QuestionsEstimate, asked: Sequence[_Asked]) -> str:
    cases = sum(len(each.cases) for each in asked)
    text = (
        f"{counted(cases, 'case')}: about {counted(estimate.questions, 'question')}, {estimate.use.tokens:,} tokens and "
        f"{estimate.use.usd:.4f} USD by the price table with {ANSWER_TOKENS} tokens an answer; {estimate.known:,} more cost "
        "nothing, because their verdicts are stored or shared"
    )
    if estimate.unpriced:
        text += f"\nwithout a price, counted as free: {printable(', '.join(sorted(estimate.unpriced)), 300)}"
    return text


def _print_tables(answered: Sequence[_Answered]) -> None:
    """Prints a table for each model, so that the figures have room on a narrow terminal; what was paid follows."""
    console = Console(highlight=False)
    for model in dict.fromkeys(found.scorer.judge_model for found in answered):
        rows = [found for found in answered if found.scorer.judge_model == model]
        console.print(Text(f"judge {printable(model, 100)}", style="bold"), soft_wrap=True)
        print_figures(("criterion", *_FIGURES), [(_name(found), *_cells(found.agreement)) for found in rows])
        console.print()
        print_figures(("criterion", *_PAID), [(_name(found), *_paid(found.judged)) for found in rows])
        console.print()
    languages = by_language([each for found in answered for each in found.judged.cases])
    if len(languages) > 1:
        of_languages = [(printable(language), *_cells(agreement)) for language, agreement in languages.items()]
        print_figures(("language", *_FIGURES), of_languages)
        console.print()
    for found in answered:
        for verb, passed in (("passed wrongly", True), ("failed wrongly", False)):
            if wrong := found.wrong(passed=passed):
                named = ", ".join(printable(name, 100) for name in wrong[:MAX_NAMED_CASES])
                more = f" and {len(wrong) - MAX_NAMED_CASES} more" if len(wrong) > MAX_NAMED_CASES else ""
                console.print(Text(f"{found.scorer.metric}: {verb}: {named}{more}"), soft_wrap=True)


_FIGURES = ("cases", "agreement", "kappa", "bias to yes", "false passes", "false fails", "no verdict")
_PAID = ("tokens", "USD", "seconds")


def _name(found: _Answered) -> str:
    return short_name(found.scorer.metric)


def _paid(judged: JudgedCases) -> Sequence[str]:
    cost = judged.cost
    return (f"{cost.input_tokens + cost.output_tokens:,}", f"{cost.usd:.4f}", f"{judged.seconds:.1f}")


def _cells(agreement: Agreement) -> list[str]:
    return [
        str(agreement.cases),
        _rate(agreement.agreement),
        _figure(agreement.kappa, agreement.kappa_interval),
        _figure(agreement.bias_to_yes, agreement.bias_interval, "+.2f"),
        _rate(agreement.false_passes),
        _rate(agreement.false_fails),
        str(sum(agreement.without_verdict.values())),
    ]


def _rate(rate: Rate | None) -> str:
    return _NOTHING if rate is None else _figure(rate.value, rate.interval)


def _figure(value: float | None, interval: Interval | None, form: str = ".2f") -> str:
    if value is None:
        return _NOTHING
    return f"{value:{form}}" + (f" [{interval[0]:{form}}, {interval[1]:{form}}]" if interval else "")


def _complain_of_missing(found: _Answered) -> None:
    missing: Mapping[str, int] = found.agreement.without_verdict
    if missing:
        causes = ", ".join(f"{number} {cause}" for cause, number in missing.items())
        complain(
            f"{found.scorer.metric}: {counted(sum(missing.values()), 'case')} without a verdict ({causes}); the first: "
            f"{printable(found.judged.problem, MAX_PROBLEM_CHARACTERS)}"
        )


def _document(found: _Answered) -> JsonObject:
    cost = found.judged.cost
    languages: JsonObject = {
        language: _figures(agreement) for language, agreement in by_language(found.judged.cases).items()
    }
    return {
        "metric": found.scorer.metric,
        "model": found.scorer.judge_model,
        **_figures(found.agreement),
        "languages": languages,
        "passed_wrongly": [*found.wrong(passed=True)],
        "failed_wrongly": [*found.wrong(passed=False)],
        "questions": found.judged.questions,
        "input_tokens": cost.input_tokens,
        "output_tokens": cost.output_tokens,
        "usd": cost.usd,
        "seconds": found.judged.seconds,
    }


def _figures(agreement: Agreement) -> JsonObject:
    figures: JsonObject = {"cases": agreement.cases, "verdicts": agreement.verdicts.good + agreement.verdicts.bad}
    rates = {
        "agreement": agreement.agreement,
        "false_pass_rate": agreement.false_passes,
        "false_fail_rate": agreement.false_fails,
    }
    for name, rate in rates.items():
        figures[name] = None if rate is None else rate.value
        figures[f"{name}_interval"] = _bounds(None if rate is None else rate.interval)
    figures["kappa"] = agreement.kappa
    figures["kappa_interval"] = _bounds(agreement.kappa_interval)
    figures["bias_to_yes"] = agreement.bias_to_yes
    figures["bias_to_yes_interval"] = _bounds(agreement.bias_interval)
    figures["without_verdict"] = {**agreement.without_verdict}
    return figures


def _bounds(interval: Interval | None) -> list[JsonValue] | None:
    return None if interval is None else [*interval]
