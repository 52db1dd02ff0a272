"""Runs the checks of `traceweir judge`, and prints what they find."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from traceweir.schemas.figures import counted
from traceweir.schemas.score import Cost
from traceweir.schemas.session import Session
from traceweir.schemas.text import printable
from traceweir.schemas.turns import Turn, turns_of
from traceweir.scorers.databricks_names import short_name
from traceweir.scorers.evaluation.plan import Plan
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.streams.cli.errors import FAILED, NO_DOCUMENT, UNUSABLE
from traceweir.streams.cli.judge_plan import chosen_criteria, judging_of, plan_of
from traceweir.streams.cli.judge_unasked import Unasked, complain_of_unasked
from traceweir.streams.cli.rows import print_figures
from traceweir.streams.cli.sessions.commands import sessions_of_files
from traceweir.streams.cli.terminal import complain, steps
from traceweir.streams.lab.judge_check import NOT_ASKED, CheckedCriterion, check_judge_on, judge_once

MAX_PROBLEM_CHARACTERS = 300


def run_check(criteria: Sequence[str], config: Path | None, model: str | None, *, as_json: bool) -> int:
    """Asks the judge about the plain cases, prints the verdicts, and returns the exit code.

    Args:
        criteria: Names of criteria; empty: all of the config, or all that ask a judge.
        config: The evaluation config; None: every criterion with its default options.
        model: The model that is asked without a config; None: the default model.
        as_json: Print JSON lines.

    Raises:
        ConfigError: the config cannot be used.
        InputError: the config has no such criterion.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailableError: the [judge] extra is not installed.
    """
    plan = plan_of(config, model)
    checked = asyncio.run(_check(plan, chosen_criteria(plan, criteria)))
    if as_json:
        for each in checked:
            sys.stdout.write(json.dumps(asdict(each) | {"fit": each.is_fit}, ensure_ascii=False) + "\n")
    else:
        _print_tables(checked)
    unasked = [each for each in checked if each.is_fit is None]
    for each in checked:
        if each.problem and each.is_fit is not None:
            complain(f"{each.metric}: {printable(each.problem, MAX_PROBLEM_CHARACTERS)}")
        if not each.cases:
            complain(f"{each.metric}: has no known cases, because a plugin defines it; judge some sessions yourself")
    complain_of_unasked(Unasked(each.metric, each.model, each.problem, each.right, each.cases) for each in unasked)
    unfit = [each.metric for each in checked if each.is_fit is False]
    if unfit:
        complain(f"The judge is unfit for {counted(len(unfit), 'criterion', 'criteria')}: {', '.join(unfit)}.")
        return FAILED
    return UNUSABLE if unasked else 0


def run_try(
    criterion: str,
    paths: Sequence[str],
    format_name: str,
    task_domain: str,
    invocation_id: str | None,
    config: Path | None,
    model: str | None,
) -> int:
    """Asks the judge about one invocation or session, prints each question and answer, and returns the exit code.

    Args:
        criterion: The name of the criterion.
        paths: The files, read as one input; `-` is standard input.
        format_name: The input format of the files, by its name.
        task_domain: Domain of a transcript without a domain of its own.
        invocation_id: The invocation, or one of the session that is judged; None: the first that the criterion can judge.
        config: The evaluation config; None: the criterion with its default options.
        model: The model that is asked without a config; None: the default model.

    Raises:
        ConfigError: the config cannot be used.
        InputError: a file cannot be read, or the config has no such criterion.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailableError: the [judge] extra is not installed.
    """
    plan = plan_of(config, model)
    [scorer] = chosen_criteria(plan, [criterion])
    sessions, complaints = sessions_of_files(paths, format_name, task_domain)
    for line in complaints.problems + complaints.unread:
        complain(line)
    if complaints.is_empty:
        complain(NO_DOCUMENT.format(", ".join(paths)))
        return FAILED
    places = [
        _Place(session, turns[: position + 1] if scorer.level == "invocation" else turns, turn.invocation.invocation_id)
        for session in sessions
        for turns in [turns_of(session)]
        for position, turn in enumerate(turns)
    ]
    named = [place for place in places if invocation_id in (None, place.invocation_id)]
    if not named:
        among = f"among {counted(len(places), 'invocation')}" if places else "in it"
        wanted = "invocation" if invocation_id is None else f"invocation {printable(invocation_id)!r}"
        complain(f"{', '.join(paths)}: there is no {wanted} {among}; `traceweir sessions` shows what a file has")
        return FAILED
    code = asyncio.run(_try(plan, scorer, named))
    return code or (FAILED if complaints.problems else 0)


class _Place(NamedTuple):
    """An invocation with the turns that a criterion measures or can see."""

    session: Session
    turns: Sequence[Turn]
    invocation_id: str


async def _try(plan: Plan, scorer: JudgedScorer, places: Sequence[_Place]) -> int:
    with judging_of(plan) as judging:
        for place in places:
            found = await judge_once(scorer, place.turns, judging.session(), place.session)
            if found.asked or found.problem == "":
                break
    of_session = scorer.level == "session"
    subject = place.session.session_id if of_session else place.invocation_id
    others = len({each.session.session_id for each in places} if of_session else places) - 1
    if others and found.asked:
        place_of = "" if of_session else f" of session {printable(place.session.session_id)}"
        have_one_id = len({each.invocation_id for each in places}) == 1
        way_out = "give a file with that session alone" if have_one_id else "--invocation ID names another"
        complain(
            f"asked about {scorer.level} {printable(subject)}{place_of} only, the first that can be judged of "
            f"{counted(others + 1, scorer.level)}; {way_out}"
        )
    sys.stdout.write(f"{scorer.metric} on {scorer.level} {printable(subject)}\n")
    for number, (question, reply) in enumerate(found.asked, 1):
        asked = question.model if reply is None or reply.model is None else reply.model
        _print_block(f"question {number} to {asked}", question.prompt)
        if reply is not None:
            paid = "stored before" if reply.cost.cached else _cost_text(reply.cost)
            _print_block(f"answer {number}: {paid}", reply.text)
    if found.measurement is None:
        problem = printable(found.problem, MAX_PROBLEM_CHARACTERS)
        has_unanswered = any(reply is None for _, reply in found.asked)
        paid = f", {_cost_text(found.unanswered)}" if has_unanswered else ""
        sys.stdout.write(f"\nno verdict: {problem} ({found.seconds:.1f} s{paid})\n")
        if found.cause not in NOT_ASKED:
            return FAILED
        complain_of_unasked([Unasked(scorer.metric, scorer.judge_model, found.problem)])
        return UNUSABLE
    measured = found.measurement
    sys.stdout.write(
        f"\nvalue {measured.value:g} in {found.seconds:.1f} s: {printable(measured.rationale, MAX_PROBLEM_CHARACTERS)}\n"
    )
    return 0


def _cost_text(cost: Cost) -> str:
    return f"{cost.input_tokens:,} tokens in, {cost.output_tokens:,} out, {cost.usd:.4f} USD"


def _print_block(title: str, text: str) -> None:
    """Prints a text of a judge or an agent; control characters in it have no effect."""
    sys.stdout.write(f"\n--- {printable(title)}\n")
    sys.stdout.writelines(f"{printable(line, len(line) + 1)}\n" for line in text.splitlines())


async def _check(plan: Plan, scorers: Sequence[JudgedScorer]) -> list[CheckedCriterion]:
    checked = []
    with judging_of(plan, with_fallback=False) as judging, steps("asking about") as begin:
        for scorer in scorers:
            begin(scorer.metric)
            checked.append(await check_judge_on(scorer, judging.session()))
    return checked


def _print_tables(checked: Sequence[CheckedCriterion]) -> None:
    """Prints a table for each model, so that the names of the criteria have room on a narrow terminal."""
    stdout = Console(highlight=False)
    for model in dict.fromkeys(each.model for each in checked):
        stdout.print(Text(f"judge {printable(model, 100)}", style="bold"), soft_wrap=True)
        print_figures(_HEADINGS, [_row(each) for each in checked if each.model == model])


_HEADINGS = ("criterion", "right", "passed wrongly", "failed wrongly", "no verdict", "tokens", "USD", "seconds")


def _row(each: CheckedCriterion) -> Sequence[str]:
    return (
        short_name(each.metric),
        f"{each.right} of {each.cases}",
        str(each.passed_wrongly),
        str(each.failed_wrongly),
        str(each.cases - each.right - each.passed_wrongly - each.failed_wrongly),
        f"{each.input_tokens + each.output_tokens:,}",
        f"{each.usd:.4f}",
        f"{each.seconds:.1f}",
    )
