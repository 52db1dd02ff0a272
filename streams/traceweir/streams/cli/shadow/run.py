"""Does the work of `traceweir shadow`: estimates, asks, runs a process of the shadow, and reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from traceweir.schemas.figures import counted
from traceweir.schemas.text import printable
from traceweir.scorers.evaluation.plan import Plan
from traceweir.streams.base.process_log import log_to_stderr
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.errors import FAILED, INTERRUPTED
from traceweir.streams.cli.score.commands import read_config_file
from traceweir.streams.cli.terminal import complain, progress_bar
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.lab.shadow.creation import RunnableShadow, Times, found_or_created
from traceweir.streams.lab.shadow.definition import Definition, ShadowOptions
from traceweir.streams.lab.shadow.errors import ShadowError
from traceweir.streams.lab.shadow.estimate import CostEstimate, none_selected
from traceweir.streams.lab.shadow.expiry import known_losses, losses_in_words, note_losses
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.lab.shadow.removal import drop, stop
from traceweir.streams.lab.shadow.run import Ended, check_needs, run_shadow
from traceweir.streams.scoring.isolation.launch import LaunchedProcess
from traceweir.streams.scoring.judges.models import ANSWER_TOKENS


class _OnlyEstimated(Exception):  # noqa: N818  # an outcome that the caller handles
    """The estimate is printed, and nothing more is wanted."""


def run(wanted: ShadowOptions, config: Path | None, times: Times, *, yes: bool, only_estimate: bool) -> int:
    """Runs a process of a shadow, which it creates if necessary; returns the exit code.

    Raises:
        ConfigError: the config cannot be used.
        EmbedderUnavailableError: the embedder that the settings name needs a package that is not installed.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailableError: a criterion asks a judge, and the judge client is not installed.
        PresidioUnavailableError: the gate needs Presidio or a model that is not installed.
        KafkaUnreachableError: no broker answers.
        NotReadyError: the broker lacks the transactions that the settings require.
        ShadowError: the shadow exists with other options, its range is empty, or nobody agreed to its cost.
        TopicsRefusedError: a topic could not be created.
    """
    settings = kafka_settings()
    log_to_stderr(settings.log_options)
    if config is not None:
        plan, text = read_config_file(config)
        wanted = replace(wanted, config=text.decode(json.detect_encoding(text)), config_digest=plan.digest)
        check_needs(settings, plan)

    def agree(definition: Definition, plan: Plan, estimate: CostEstimate) -> None:
        complain(estimate_text(definition, estimate))
        if only_estimate:
            raise _OnlyEstimated
        if not yes and (why := reason_to_ask(definition, plan, estimate)) is not None:
            _ask(why)

    try:
        found = found_or_created(settings, wanted, times, agree, complain)
    except _OnlyEstimated:
        return 0
    if only_estimate:
        raise ShadowError(f"shadow {wanted.name!r} exists already: --estimate is for a new shadow")
    return _run(settings, found)


def stop_shadow(name: str) -> int:
    """Stops all processes of a shadow; returns the exit code.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: there is no such shadow, or a process does not leave in time.
    """
    stopped = stop(kafka_settings(), name)
    what = "asked the processes to stop" if stopped is None else f"{counted(stopped, 'process', 'processes')} stopped"
    complain(f"shadow {name}: {what}; `traceweir shadow --name {name}` resumes it")
    return 0


def drop_shadow(name: str) -> int:
    """Removes a shadow; returns the exit code.

    Raises:
        KafkaUnreachableError: no broker answers.
        ShadowError: there is no such shadow, a process does not leave in time, or Kafka refuses.
        TopicsRefusedError: a topic could not be deleted.
    """
    deleted = drop(kafka_settings(), name)
    complain(f"shadow {name} is removed: {', '.join(deleted) or 'no topic'}")
    return 0


def reason_to_ask(definition: Definition, plan: Plan, estimate: CostEstimate) -> str | None:
    """Returns why a person must agree to the cost of a new shadow; None if the budget limits it and covers the estimate.

    Args:
        definition: The shadow.
        plan: Its plan; the budget of its judge is the lower one of --budget and `judge.budget.usd`.
        estimate: Its estimate.
    """
    # Judged sessions that have neither a question nor a known verdict tell nothing about the others.
    is_unknown = bool(plan.judged) and not (estimate.questions or estimate.known)
    if not (estimate.questions or is_unknown):
        return None
    limit = plan.judge.budget.usd
    if limit is None:
        how_many = "the number of questions to judges is unknown" if is_unknown else "judges are asked"
        return f"{how_many}, and neither --budget nor judge.budget.usd limits their cost"
    if estimate.unpriced:
        return "a model has no price, so that the budget does not limit its cost"
    if estimate.usd > limit:
        origin = "--budget" if limit == definition.budget_usd else "judge.budget.usd of the config"
        return (
            f"the estimate exceeds the budget of {limit:g} USD ({origin}): when it is spent, no further question is asked, and "
            "the scores that need one are NOT_EVALUATED `budget`"
        )
    return None


def estimate_text(definition: Definition, estimate: CostEstimate) -> str:
    """Returns the estimate as lines for a person."""
    lines = [
        (
            f"shadow {definition.name}: about {counted(estimate.sessions, 'session')} to score (estimated from "
            f"{estimate.looked_at:,} that were read)"
        )
    ]
    if (why := none_selected(definition, estimate)) is not None:
        lines.append(f"  {why}: check --app and --sample; sessions that were not read can be selected")
    if estimate.questions or estimate.known:
        lines.append(
            f"  judges: about {counted(estimate.questions, 'question')}, about {estimate.usd:.4g} USD by the price table with "
            f"{ANSWER_TOKENS} tokens an answer; {estimate.known:,} more cost nothing, because their verdicts are stored"
        )
    if estimate.unpriced:
        lines.append(f"  without a price, counted as free: {printable(', '.join(estimate.unpriced), 300)}")
    return "\n".join(lines)


def _ask(why: str) -> None:
    if not sys.stdin.isatty():
        raise ShadowError(f"{why}. Nobody can be asked here: set a higher budget, reduce --sample, or agree with --yes")
    sys.stderr.write(f"{why}. Run the shadow? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ShadowError("nobody agreed to the cost, and nothing was created")


def _run(settings: Settings, found: RunnableShadow) -> int:
    definition = found.definition
    check_needs(settings, found.plan)
    results = ShadowNames.of(settings, definition.name).topics.results
    if not found.is_new:
        complain(f"shadow {definition.name} is resumed as it was created: {definition.in_words}")
    if lost := note_losses(settings, definition):
        complain(f"sessions expired before they were scored, and are left out: {losses_in_words(lost)}")
    # Lines would break the progress bar.
    if sys.stderr.isatty() and settings.log_level == "info":
        log_to_stderr(replace(settings.log_options, level="warning"))
    launched = LaunchedProcess()
    try:
        with progress_bar(f"shadow {definition.name}, offsets") as advance:
            ended = run_shadow(settings, definition, found.plan, advance, launched)
    finally:
        launched.close()
    if ended.outcome == "finished":
        # Processes that started later can have noted more.
        lost = known_losses(settings, definition)
    complain(summary(definition, ended, results, lost))
    if ended.code:
        return ended.code
    return {"finished": 0, "stopped": FAILED, "interrupted": INTERRUPTED}[ended.outcome]


def summary(definition: Definition, ended: Ended, results: str, lost: Mapping[int, int]) -> str:
    """Returns what a process has done, and what comes next, as lines for a person.

    Args:
        definition: The shadow.
        ended: How the process has ended.
        results: The topic of the scores.
        lost: How many offsets of each partition expired before they were scored.
    """
    done = ended.totals
    parts = [counted(done.get("score.scored", 0), "session") + " scored"]
    parts += [f"{done[key]:,} {word}" for key, word in _WORDS.items() if done.get(key)]
    parts += _unusable(done)
    lines = [f"shadow {definition.name}: this process: {', '.join(parts)}"]
    if ended.outcome == "finished":
        what = "the whole range is scored"
        if lost:
            what = (
                f"the range is scored, except sessions that expired before they were scored ({losses_in_words(lost)})"
            )
        lines.append(f"{what}: {results}. Compare: traceweir diff results results.shadow.{definition.name}")
    else:
        lines.append(f"the shadow is not finished; `traceweir shadow --name {definition.name}` resumes it")
    return "\n".join(lines)


_WORDS = {
    "score.left_out": "left out (another app, or not in the sample)",
    "score.scores.NOT_EVALUATED.budget": "scores without a verdict because the budget is spent",
    "score.scores.NOT_EVALUATED.error": "scores without a value because of an error",
}


def _unusable(done: Mapping[str, int]) -> list[str]:
    count = sum(number for key, number in done.items() if ".dead_lettered." in key)
    return [f"{counted(count, 'record')} unusable (no dead letter is written)"] if count else []
