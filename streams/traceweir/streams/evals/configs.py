"""Which criteria a file is scored by: those that were given, those beside it, or Google ADK's default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traceweir.scorers.evaluation.plan import DEFAULT_THRESHOLDS, ConfigError, Plan, read_plan
from traceweir.streams.evals.files import TEST_SUFFIX, read_json, read_text
from traceweir.streams.formats.documents import InputError

CONFIG_NAME = "test_config.json"


@dataclass(frozen=True)
class Criteria:
    """The plan for a file, and where it is from."""

    plan: Plan
    origin: str
    """One line for a person."""


def criteria_for(path: Path, given: Path | None, *, alone: bool) -> Criteria:
    """The criteria of an eval set.

    As ADK finds them: `test_config.json` beside a `*.test.json` (as `AgentEvaluator` does), or beside another file if it is the only one
    (as `adk eval` does); else ADK's default. A file that was given is read or is an error; ADK takes its default if there is none.

    Args:
        path: The eval set.
        given: A config that holds for all files.
        alone: Whether it is the only file.

    Raises:
        ConfigError: the config cannot be used, with every problem and the file's name.
        InputError: the config cannot be read.
    """
    if given is not None:
        return Criteria(read_config_file(given), f"criteria of {given}")
    beside = path.with_name(CONFIG_NAME)
    if beside.is_file() and (alone or path.name.endswith(TEST_SUFFIX)):
        return Criteria(read_config_file(beside), f"criteria of {beside}")
    thresholds = ", ".join(f"{metric} {threshold}" for metric, threshold in DEFAULT_THRESHOLDS.items())
    why = f"no {CONFIG_NAME} beside it"
    if beside.is_file():
        why = f"{beside} counts only where one eval set is named, as in ADK; --config names it for all"
    return Criteria(
        read_plan({"criteria": dict(DEFAULT_THRESHOLDS)}), f"Google ADK's default criteria, {thresholds} ({why})"
    )


def read_config_file(path: Path) -> Plan:
    """The plan of a config file.

    Raises:
        ConfigError: it cannot be used, with every problem and the file's name.
        InputError: it cannot be read.
    """
    text = read_text(path)
    read_json(path)  # for its message, which shows the place
    try:
        return read_plan(text)
    except ConfigError as error:
        raise ConfigError([f"{path}: {problem}" for problem in error.problems]) from None


def clashing(names: Sequence[tuple[Path, str]]) -> None:
    """See that no two files have a case of one id, where they share recorded sessions: a session could not be matched to one of them.

    Raises:
        InputError: two have.
    """
    first: dict[str, Path] = {}
    for path, eval_id in names:
        if (other := first.setdefault(eval_id, path)) != path:
            raise InputError(
                f"{path}: case {eval_id[:80]!r} has the eval id of a case in {other}, and a recorded session can be matched to one of them "
                "only. Score the files one at a time, or select cases with FILE:case1,case2."
            )
