"""Runs `traceweir trust`, and prints agreement, rates and plans; escapes all text, which can be hostile."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.table import Table
from rich.text import Text

from traceweir.schemas.base import JsonObject
from traceweir.schemas.figures import counted
from traceweir.schemas.labels import Label
from traceweir.schemas.score import Score
from traceweir.schemas.text import printable
from traceweir.scorers.spelling import did_you_mean
from traceweir.streams.base.statistics.agreement import LabelAgreement
from traceweir.streams.base.statistics.label_plan import (
    BAR,
    POWER,
    Assumed,
    labels_for_bar,
    labels_for_certificate,
    labels_for_difference,
    labels_for_people,
    labels_for_rate,
)
from traceweir.streams.base.statistics.people_only import Estimated
from traceweir.streams.base.statistics.rate_statement import Calibration, RateStatement, state_rate
from traceweir.streams.base.statistics.rogan_gladen import KnownRate
from traceweir.streams.cli.errors import FAILED, NO_DOCUMENT
from traceweir.streams.cli.record_lines import MAX_PROBLEMS, RecordLines
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.trust_answers import answers_document, answers_lines, kappa_figure
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.trust import Joined, LabelledMeasure, LabelledScores, joined

MAX_DISAGREEMENTS = 12
_NOTHING = "-"


def run_agreement(labels: Path, results: Path, criterion: str | None, *, as_json: bool) -> int:
    """Prints the agreement of each criterion and judge, and returns the exit code.

    Raises:
        InputError: a file cannot be read, or the results have no such criterion.
    """
    found, unusable = _read(labels, results, criterion)
    if found is None:
        return FAILED
    known = [(group, made) for group in found.groups if (made := group.agreement) is not None]
    for group in found.groups:
        if unsure := group.unsure:
            name = printable(group.measured.criterion, 100)
            complain(
                f"criterion {name!r}: {counted(unsure, 'label')} unsure, or of annotators who differ, and not in the table"
            )
    answered = [group for group in found.groups if group.pairs]
    if as_json:
        for group in found.groups:
            made = group.agreement
            if made is not None or group.pairs:
                agreement = _agreement_document(made, group) if made is not None else {}
                _print_json(_names(group.measured) | agreement | answers_document(group))
    else:
        if known:
            _print_agreement(known)
        for group in answered:
            for line in answers_lines(group):
                Console(highlight=False).print(Text(line), soft_wrap=True)
    if not known and not answered:
        complain("no label can be compared with a verdict; the lines above say why" if found.unused else "no label")
    return FAILED if unusable or not (known or answered) else 0


def run_rate(
    labels: Path, results: Path, criterion: str | None, half_width: float, calibration: Path | None, *, as_json: bool
) -> int:
    """Prints the rate of each criterion and judge, and returns the exit code.

    Raises:
        InputError: a file cannot be read, or the results have no such criterion.
    """
    found, unusable = _read(labels, results, criterion)
    elsewhere: dict[LabelledMeasure, Calibration] = {}
    if calibration is not None:
        other, more = _read(labels, calibration, criterion)
        unusable += more
        elsewhere = {group.measured: made for group in other.groups if (made := _calibration(group))} if other else {}
    if found is None:
        return FAILED
    stated = [
        (group, state_rate(group.subjects, half_width=half_width, calibration=elsewhere.get(group.measured)))
        for group in found.groups
        if group.subjects is not None
    ]
    if as_json:
        for group, statement in stated:
            _print_json(_names(group.measured) | asdict(statement))
    elif stated:
        _print_rates(stated)
    if not stated:
        complain(f"{results}: no score has a verdict, so there is no rate; a criterion needs a threshold")
    return FAILED if unusable or not stated else 0


def run_plan(criterion: str, tpr: float, tnr: float, rate: float, half_width: float, *, as_json: bool) -> int:
    """Prints how many labels are needed, and returns the exit code."""
    assumed = Assumed(rate=rate, passing=tpr, failing=tnr)
    # Of labels that are drawn apart, both must succeed.
    good, bad = (labels_for_bar(each, power=math.sqrt(POWER)) for each in (tpr, tnr))
    certified = labels_for_certificate(assumed)
    numbers: JsonObject = {
        "criterion": criterion,
        "half_width": half_width,
        "rate": labels_for_rate(assumed, half_width),
        "rate_people_only": labels_for_people(rate, half_width),
        "difference_each_version": labels_for_difference(assumed, half_width),
        "certified_good": good,
        "certified_bad": bad,
        "certified": certified,
    }
    if as_json:
        _print_json(numbers)
        return 0
    proof = f"labels for a proof that TPR and TNR are {BAR} and more"
    console = Console(highlight=False)
    table = Table("labels", "for", box=None, pad_edge=False, header_style="bold")
    table.add_row(_count(numbers["rate"]), f"the rate to +/- {half_width:g}, with the judge's verdicts on all others")
    table.add_row(_count(numbers["rate_people_only"]), f"the rate to +/- {half_width:g}, by people alone")
    table.add_row(
        _count(numbers["difference_each_version"]), f"of each of two versions, their difference to +/- {half_width:g}"
    )
    apart = f"; or {good:,} good and {bad:,} bad answers" if good is not None and bad is not None else ""
    table.add_row(_count(certified), proof + apart)
    console.print(Text(printable(criterion, 200)))
    console.print(table)
    if certified is None:
        complain(f"TPR {tpr:g} and TNR {tnr:g} must both be well above {BAR}, or no number of labels can prove it")
    return 0


def _read(labels: Path, results: Path, criterion: str | None) -> tuple[Joined | None, int]:
    """Returns the joined files, and how many lines are unusable; None without a usable line of results."""
    scores, given, unusable = read_records(labels, results, criterion)
    if not scores or not given:
        return None, unusable
    found = joined(scores, given)
    say_unused(found.unused)
    known = {score.metric for score in scores}
    for name in sorted({label.criterion for label in given} - known)[:MAX_PROBLEMS]:
        complain(f"criterion {printable(name, 100)!r}: {did_you_mean(name, known)}")
    return found, unusable


def say_unused(unused: Mapping[str, int], of: str = "") -> None:
    """Says how many labels are not used, and why.

    Args:
        unused: How many labels have each reason.
        of: What they are not used for; empty: for everything that is printed.
    """
    for reason, number in unused.items():
        complain(f"{f'{of}: ' if of else ''}{number:,} not used: {reason}")


def read_records(labels: Path, results: Path, criterion: str | None) -> tuple[list[Score], list[Label], int]:
    """Returns the scores and labels of two files, those of one criterion if one is named, and how many lines are unusable.

    Raises:
        InputError: a file cannot be read, or the results have no such criterion.
    """
    score_lines = RecordLines(results, Score)
    label_lines = RecordLines(labels, Label)
    scores = list(score_lines)
    given = list(label_lines)
    bad_scores = score_lines.bad
    bad_labels = label_lines.bad
    if not scores or not given:
        for path, records, bad in ((results, scores, bad_scores), (labels, given, bad_labels)):
            if not records and not bad:
                complain(NO_DOCUMENT.format(path))
        return scores, given, bad_scores + bad_labels
    known = {score.metric for score in scores}
    if criterion is not None:
        if criterion not in known:
            raise InputError(
                f"--criterion {printable(criterion)}: the results have none; {did_you_mean(criterion, known)}"
            )
        scores = [score for score in scores if score.metric == criterion]
        given = [label for label in given if label.criterion == criterion]
    return scores, given, bad_scores + bad_labels


def _calibration(group: LabelledScores) -> Calibration | None:
    made = group.agreement
    if made is None or made.passing is None or made.failing is None:
        return None
    return Calibration(
        KnownRate(made.passing.value, made.passing.size), KnownRate(made.failing.value, made.failing.size)
    )


def _print_agreement(known: Sequence[tuple[LabelledScores, LabelAgreement]]) -> None:
    console = Console(highlight=False)
    table = Table("criterion", "judge", box=None, pad_edge=False, header_style="bold")
    for title in ("labels", "both pass", "both fail", "only judge passes", "only people pass", "TPR", "TNR", "kappa"):
        table.add_column(title, justify="right")
    for group, made in known:
        counts = made.table
        kappa = _NOTHING if made.kappa is None else kappa_figure(made.kappa, made.kappa_interval)
        table.add_row(
            Text(printable(group.measured.criterion, 100)),
            Text(printable(group.measured.judge, 60) or _NOTHING),
            *(
                f"{number:,}"
                for number in (
                    counts.good + counts.bad,
                    counts.good_passed,
                    counts.bad - counts.bad_passed,
                    counts.bad_passed,
                    counts.good - counts.good_passed,
                )
            ),
            _figure(made.passing),
            _figure(made.failing),
            kappa,
        )
    console.print(table)
    for group, _ in known:
        if group.disagreements:
            named = ", ".join(
                printable(session if session == subject else f"{session}/{subject}", 100)
                for session, subject in group.disagreements[:MAX_DISAGREEMENTS]
            )
            more = len(group.disagreements) - MAX_DISAGREEMENTS
            console.print(
                Text(
                    f"{printable(group.measured.criterion, 100)}: disagree: {named}"
                    + (f" and {more} more" if more > 0 else "")
                ),
                soft_wrap=True,
            )


def _print_rates(stated: Sequence[tuple[LabelledScores, RateStatement]]) -> None:
    console = Console(highlight=False)
    table = Table("criterion", "judge", box=None, pad_edge=False, header_style="bold")
    for title in ("judged", "coverage", "labels", "raw", "corrected", "95 %", "method"):
        table.add_column(title, justify="right")
    for group, each in stated:
        has = each.value is not None and each.low is not None and each.high is not None
        table.add_row(
            Text(printable(group.measured.criterion, 100)),
            Text(printable(group.measured.judge, 60) or _NOTHING),
            f"{each.judged:,}",
            f"{each.coverage:.1%}",
            f"{each.labels:,}",
            f"{each.raw:.3f}",
            f"{each.value:.3f}" if has else _NOTHING,
            f"{each.low:.3f} to {each.high:.3f}" if has else _NOTHING,
            each.method or _NOTHING,
        )
    console.print(table)
    for group, each in stated:
        console.print(Text(f"{printable(group.measured.criterion, 100)}: {each.sentence}"), soft_wrap=True)


def _names(measured: LabelledMeasure) -> JsonObject:
    return {
        "criterion": measured.criterion,
        "scorer_version": measured.scorer_version,
        "judge": measured.judge or None,
        "metric_digest": measured.metric_digest or None,
    }


def _agreement_document(made: LabelAgreement, group: LabelledScores) -> JsonObject:
    counts = made.table
    interval = made.kappa_interval
    return {
        "labels": counts.good + counts.bad,
        "unsure": group.unsure,
        "both_pass": counts.good_passed,
        "both_fail": counts.bad - counts.bad_passed,
        "only_judge_passes": counts.bad_passed,
        "only_people_pass": counts.good - counts.good_passed,
        "tpr": _rate_document(made.passing),
        "tnr": _rate_document(made.failing),
        "kappa": made.kappa,
        "kappa_interval": [*interval] if interval else None,
        "disagreements": [{"session_id": session, "subject": subject} for session, subject in group.disagreements],
    }


def _rate_document(found: Estimated | None) -> JsonObject | None:
    return None if found is None else asdict(found)


def _figure(found: Estimated | None) -> str:
    return _NOTHING if found is None else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _count(number: JsonValue) -> str:
    return f"{number:,}" if isinstance(number, int) else "none is enough"


def _print_json(document: JsonObject) -> None:
    sys.stdout.write(json.dumps(document, ensure_ascii=True) + "\n")
