"""Chooses the criteria of a file: the given config, the config beside the file, or Google ADK's defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.criteria import ADK_DEFAULT_CRITERIA
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.other_documents import CONFIG
from traceweir.streams.intake.formats.recognition import misplaced
from traceweir.streams.lab.evals.files import TEST_SUFFIX, read_json, read_text

CONFIG_NAME = "test_config.json"


@dataclass(frozen=True)
class Criteria:
    """The plan for a file, and its origin."""

    plan: Plan
    origin: str
    """One line for a person."""


def criteria_for(path: Path, given: Path | None, *, alone: bool) -> Criteria:
    """Returns the criteria of an eval set.

    The search follows ADK: `test_config.json` beside a `*.test.json` (like `AgentEvaluator`), or beside another file if
    that file is the only eval set (like `adk eval`); else ADK's defaults. A given file that is missing is an error, whereas
    ADK then uses its defaults.

    Args:
        path: The eval set.
        given: A config for all files.
        alone: Whether the eval set is the only one.

    Raises:
        ConfigError: the config cannot be used; the error lists every problem with the name of the file.
        InputError: the config cannot be read.
    """
    if given is not None:
        return Criteria(read_config_file(given), f"criteria of {given}")
    beside = path.with_name(CONFIG_NAME)
    if beside.is_file() and (alone or path.name.endswith(TEST_SUFFIX)):
        return Criteria(read_config_file(beside), f"criteria of {beside}")
    plan = read_plan({"criteria": {name: {} for name in ADK_DEFAULT_CRITERIA}})
    thresholds = ", ".join(f"{metric.name} {metric.threshold}" for metric in plan.metrics)
    why = f"no {CONFIG_NAME} beside it"
    if beside.is_file():
        why = f"{beside} applies only if one eval set is named, as in ADK; --config applies it to all"
    return Criteria(plan, f"Google ADK's default criteria, {thresholds} ({why})")


def read_config_file(path: Path) -> Plan:
    """Returns the plan of a config file.

    Raises:
        ConfigError: the config cannot be used; the error lists every problem with the name of the file.
        InputError: the file cannot be read.
    """
    text = read_text(path)
    if (what := misplaced(text, CONFIG)) is not None:
        raise ConfigError([f"{path}: {what}"])
    # Only for its error message, which shows line and column.
    read_json(path)
    try:
        return read_plan(text)
    except ConfigError as error:
        raise ConfigError([f"{path}: {problem}" for problem in error.problems]) from None


def clashing(names: Sequence[tuple[Path, str]]) -> None:
    """Checks that eval ids are unique across files that share recorded sessions, so that each session matches one case.

    Raises:
        InputError: two files have a case with the same eval id.
    """
    first: dict[str, Path] = {}
    for path, eval_id in names:
        if (other := first.setdefault(eval_id, path)) != path:
            raise InputError(
                f"{path}: case {eval_id[:80]!r} has the eval id of a case in {other}, and a recorded session can be "
                "matched to only one of them. Score the files one at a time, or select cases with FILE:case1,case2."
            )
