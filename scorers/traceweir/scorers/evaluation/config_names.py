"""Checks the names of metrics that a config mentions."""

from __future__ import annotations

from pydantic import JsonValue

from traceweir.schemas.base import JsonObject
from traceweir.scorers.databricks_names import RUNS_ON, full_name, short_name
from traceweir.scorers.evaluation.config_problems import are_enough
from traceweir.scorers.evaluation.registry import BUILT_IN
from traceweir.scorers.spelling import did_you_mean


def unknown_names(sections: JsonObject, criteria: JsonObject) -> list[str]:
    """Returns the problems of references to criteria that do not exist.

    The function reads the document itself, so that these problems are reported together with all others.
    """
    gate = sections.get("gate")
    sampling = sections.get("sampling")
    known = {full_name(name) for name in criteria}
    sampled = known | _automatic_names(sections)
    required = gate.get("required") if isinstance(gate, dict) else None
    named = [("gate.required", name, known) for name in (required if isinstance(required, list) else ())]
    named += [("sampling", name, sampled) for name in (sampling if isinstance(sampling, dict) else ())]
    problems = named_twice(sampling, "sampling")
    for place, name, allowed in named:
        if are_enough(problems):
            break
        if isinstance(name, str) and full_name(name) not in allowed:
            if full_name(name) in sampled:
                # Without a threshold the criterion would always pass.
                hint = "add it to criteria with a threshold"
            else:
                hint = did_you_mean(name, [*criteria, *(short_name(each) for each in allowed - known)])
            problems.append(f"{place}: {name!r} is not among the criteria; {hint}")
    return problems


def named_twice(names: JsonValue, place: str) -> list[str]:
    """Returns the problems of names that are spelled differently and mean the same metric."""
    first: dict[str, str] = {}
    problems = []
    for name in names if isinstance(names, dict) else ():
        other = first.setdefault(full_name(name), name)
        if other != name:
            problems.append(f"{place}.{name}: is the same metric as {other}; keep one of them")
    return problems


def code_names(sections: JsonObject) -> dict[str, str]:
    """Returns the metrics of `custom_metrics` with the code that ADK would run, also for a config with problems."""
    custom = sections.get("custom_metrics", sections.get("customMetrics"))
    found = {}
    for metric, entry in custom.items() if isinstance(custom, dict) else ():
        code = entry.get("code_config", entry.get("codeConfig")) if isinstance(entry, dict) else None
        name = code.get("name") if isinstance(code, dict) else None
        found[metric] = name if isinstance(name, str) else ""
    return found


def _automatic_names(sections: JsonObject) -> set[str]:
    """Returns the names of the metrics that `agent_evaluation` adds, also for a config with problems."""
    section = sections.get("agent_evaluation", sections.get("agentEvaluation"))
    if section is None:
        return set()
    judged = not isinstance(section, dict) or section.get("judged", True)
    return {name for name in RUNS_ON if judged or not BUILT_IN[name].judged}
