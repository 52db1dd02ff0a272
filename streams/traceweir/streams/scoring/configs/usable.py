"""Checks that a worker can score with a config of the topic `configs`."""

from __future__ import annotations

from traceweir.schemas.base import JsonObject
from traceweir.scorers.evaluation.config_problems import ConfigError
from traceweir.scorers.evaluation.plan import Plan, read_plan
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
from traceweir.streams.scoring.judges.litellm_setup import check_judge

ONLY_IN_FILE = (("gate", "cache_size"), ("gate", "max_scopes"), ("judge", "retry_later"))
"""Options that size the state of a worker, which has it before it reads the topic: only the config file sets them."""


def usable_plan(document: bytes, file: Plan) -> Plan:
    """Returns the plan of a config of the topic.

    Args:
        document: The config, as JSON.
        file: The plan of the worker's config file.

    Raises:
        ConfigError: this worker cannot score with the config; the error lists all problems.
    """
    plan = read_plan(document)
    beside = [("challenger.config.", plan.challenger.plan)] if plan.challenger is not None else []
    problems = [problem for place, each in [("", plan), *beside] for problem in _problems(place, each, file)]
    if problems:
        raise ConfigError(problems)
    return plan


def _problems(place: str, plan: Plan, file: Plan) -> list[str]:
    problems = []
    if plan.gate.presidio != file.gate.presidio:
        problems.append(
            f"{place}gate.presidio: differs from that of the worker's config file, and a worker loads its language model only at "
            "its start; change the section in the file, restart the workers, then push"
        )
    if plan.judged:
        try:
            check_judge()
        except JudgeUnavailableError as error:
            problems.append(f"{place}criteria: {', '.join(sorted(plan.judged))} ask a judge, but {error}")
    return problems


def without_effect(document: JsonObject) -> list[str]:
    """Returns the options in a config that have an effect only in the config file of a worker.

    >>> without_effect({"gate": {"cacheSize": 10, "threshold": 0.5}})
    ['gate.cache_size']
    """
    found = []
    for section, option in ONLY_IN_FILE:
        options = document.get(section)
        first, *others = option.split("_")
        spellings = {option, first + "".join(map(str.capitalize, others))}
        if isinstance(options, dict) and spellings & options.keys():
            found.append(f"{section}.{option}")
    return found
