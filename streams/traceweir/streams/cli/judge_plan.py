"""Finds what the commands of `traceweir judge` ask: the criteria of a config, or all, and the judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.scorers.databricks_names import full_name, short_name
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.scorers.evaluation.registry import PLACES
from traceweir.scorers.judged.base import JudgedScorer
from traceweir.scorers.judged.prompt_criterion import PromptCriterion
from traceweir.scorers.spelling import MAX_NAME_CHARS
from traceweir.streams.base.settings import load_settings
from traceweir.streams.cli.score.commands import read_config
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.scoring.judges.offline import judging_from_file
from traceweir.streams.scoring.judges.service import Judging


def plan_of(config: Path | None, model: str | None) -> Plan:
    """Returns the plan of a config, or one with every criterion that asks a judge.

    Args:
        config: The evaluation config; None: every criterion with its default options.
        model: The model that is asked without a config; None: the default model.

    Raises:
        ConfigError: the config cannot be used.
    """
    if config is not None:
        return read_config(config)
    criterion: JsonObject = {"threshold": 1.0}
    if model is not None:
        criterion["judge_model_options"] = {"judge_model": model}
    return read_plan({"criteria": {name: criterion for name, place in PLACES.items() if place.startswith("judged.")}})


def chosen_criteria(plan: Plan, criteria: Sequence[str]) -> list[JudgedScorer]:
    """Returns the criteria of a plan with these names; without names, all that ask a judge.

    Raises:
        InputError: the plan has no such criterion.
        ConfigError: no criterion of the plan asks a judge.
    """
    found = {metric.name: metric.scorer for metric in plan.metrics if isinstance(metric.scorer, JudgedScorer)}
    wanted = [full_name(name) for name in criteria]
    if unknown := [name for name, full in zip(criteria, wanted, strict=True) if full not in found]:
        known = ", ".join(found) or "none"
        raise InputError(
            "\n".join(
                f"{printable(name)}: asks no judge here; the criteria that ask one are: {known}{_nearest(name, found)}"
                for name in unknown
            )
        )
    if not found:
        raise ConfigError(["criteria: none of them asks a judge; leave --config out to check every criterion"])
    return [found[name] for name in wanted or found]


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name[:MAX_NAME_CHARS], [each for full in known for each in {full, short_name(full)}], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def passing_value(plan: Plan, scorer: JudgedScorer) -> float:
    """Returns the least value with which a labelled case passes.

    It is the threshold for a criterion of one's own, whose scale the config defines. For every other criterion it is 1:
    a label says that all that the case asks for is met.
    """
    if not isinstance(scorer, PromptCriterion):
        return 1.0
    thresholds = [metric.threshold for metric in plan.metrics if metric.scorer is scorer]
    return next((each for each in thresholds if each is not None), scorer.value_range[1])


@contextmanager
def judging_of(plan: Plan, *, with_fallback: bool = True) -> Iterator[Judging]:
    """Yields the judge of a plan, with verdicts in the file of `traceweir score`.

    Args:
        plan: The plan.
        with_fallback: Whether the models of the fallback are asked; without them, all verdicts are those of the model that
            a table names.

    Raises:
        ConfigError: no criterion of the plan asks a judge.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailableError: the [judge] extra is not installed.
    """
    # The commands show what a check by known cases only counts.
    changes: dict[str, object] = {"check": "off"} if with_fallback else {"check": "off", "fallback": {}}
    with judging_from_file(plan, load_settings(), plan.judge.model_copy(update=changes)) as judging:
        if judging is None:
            raise ConfigError(["criteria: none of them asks a judge"])
        yield judging
