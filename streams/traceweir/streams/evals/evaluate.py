"""Eval sets from Python: `evaluate_files` is to recorded sessions what Google ADK's `AgentEvaluator.evaluate` is to an agent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from traceweir.scorers.judge import Judge
from traceweir.streams.clock import utc_now
from traceweir.streams.evals.configs import clashing, criteria_for
from traceweir.streams.evals.files import Chosen, chosen_files, read_eval_file
from traceweir.streams.evals.recordings import Runs, read_recordings, sessions_beside
from traceweir.streams.evals.results import Report
from traceweir.streams.evals.scoring import ScoredFile, score_files
from traceweir.streams.evals.text import detail_lines, failure_lines
from traceweir.streams.formats.documents import InputError
from traceweir.streams.judges.offline import judges_from_file
from traceweir.streams.settings import Settings, load_settings

Names = str | Path | Sequence[str | Path]


def evaluate_files(
    path: Names,
    sessions: Names | None = None,
    num_runs: int | None = None,
    *,
    config: str | Path | None = None,
    judge: Judge | None = None,
    print_detailed_results: bool = False,
) -> Report:
    """Score recorded sessions against eval sets, and fail as an assertion where a criterion misses its threshold.

    Values are pooled as ADK's `AgentEvaluator` pools them: per case and criterion the mean over all invocations of all runs. May be
    called where an event loop runs. Criteria that ask a judge ask the one that the config and `TRACEWEIR_JUDGE_...` name, as in
    `traceweir eval`, and its verdicts are remembered in the same file.

    Args:
        path: A file, `FILE:case1,case2`, a folder of `*.test.json`, or several of these.
        sessions: Files of recorded sessions, one or more; matched by eval id. None: those that lie beside each eval set, as
            `trip.sessions.json` or `.jsonl` beside `trip.test.json`.
        num_runs: How many recorded runs of each case are needed, and taken. None: all that there are, at least one.
        config: Criteria for all files. None: `test_config.json` as ADK finds it, or ADK's default.
        judge: Whom criteria may ask in place of that one.
        print_detailed_results: Whether to print each case in full to stdout.

    Returns:
        Everything that was measured.

    Raises:
        AssertionError: a case is not PASSED, or there is none; with a sentence for each reason, in ADK's words.
        InputError: a file cannot be read.
        ConfigError: a config cannot be used.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailable: a criterion asks a judge, and what asks is not installed, or what it said cannot be remembered.
        ValueError: `num_runs` is below 1.
    """
    if num_runs is not None and num_runs < 1:
        raise ValueError(f"num_runs must be at least 1, got {num_runs}")
    chosen = chosen_files(_listed(path))
    scored = prepared(chosen, None if sessions is None else _listed(sessions), config)
    report = _run(scored, num_runs, judge, load_settings())
    if print_detailed_results:
        for case in report.cases:
            sys.stdout.write("\n".join(detail_lines(case)) + "\n")
    failures = [line for case in report.cases if case.status != "PASSED" for line in failure_lines(case)]
    # A criterion that a passing case could not be measured by is a failure for ADK's AgentEvaluator, too.
    failures += [line for case in report.cases if case.status == "PASSED" for line in failure_lines(case)]
    if not report.cases:
        failures.append("No eval cases were evaluated, so there is nothing to pass.")
    if failures:
        hint = "" if print_detailed_results else " Run it again with print_detailed_results=True for the details."
        raise AssertionError(f"Following are all the test failures.{hint}\n" + "\n".join(failures))
    return report


def prepared(
    chosen: Sequence[Chosen], sessions: Sequence[str] | None, config: str | Path | None = None
) -> list[ScoredFile]:
    """Files with their criteria and with what was recorded.

    Args:
        chosen: The files.
        sessions: Files of recorded sessions for all of them; None: what lies beside each.
        config: Criteria for all of them.

    Raises:
        InputError: a file cannot be read, or no sessions lie beside one.
        ConfigError: a config cannot be used.
    """
    files = [read_eval_file(each) for each in chosen]
    given = None if config is None else Path(config)
    criteria = [criteria_for(file.path, given, alone=len(files) == 1) for file in files]
    if sessions is not None:
        names = [(file.path, case.eval_id) for file in files for case in file.cases]
        clashing(names)
        shared = read_recordings(sessions, frozenset(name for _, name in names))
        return [ScoredFile(file, each.plan, shared, {}) for file, each in zip(files, criteria, strict=True)]
    return [ScoredFile(file, each.plan, beside(file.path), {}) for file, each in zip(files, criteria, strict=True)]


def beside(path: Path) -> Runs:
    """What was recorded beside an eval set.

    Raises:
        InputError: nothing was, or it cannot be read.
    """
    found = sessions_beside(path)
    if found is None:
        stem = path.name.removesuffix(".json").removesuffix(".test").removesuffix(".evalset")
        raise InputError(
            f"{path}: no recorded sessions are given, and neither {stem}.sessions.json nor {stem}.sessions.jsonl lies beside it. Traceweir "
            "never runs the agent: record its sessions, and name the file."
        )
    return read_recordings([str(found)])


def _run(scored: Sequence[ScoredFile], num_runs: int | None, judge: Judge | None, settings: Settings) -> Report:
    def run() -> Report:
        plans = [each.plan for each in scored] if judge is None else []
        with judges_from_file(plans, settings) as judges:  # here, as its file belongs to the thread that opens it
            return asyncio.run(
                score_files(
                    [replace(each, judge=judges.get(each.plan.digest)) for each in scored],
                    now=utc_now,
                    num_runs=num_runs,
                    pooled=True,
                    judge=judge,
                    timeout_s=settings.score_timeout_s,
                    judge_timeout_s=settings.judge_timeout_s,
                )
            )

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(
        1
    ) as thread:  # a notebook's loop, or that of an async test, cannot be run again from within
        return thread.submit(run).result()


def _listed(names: Names) -> list[str]:
    return [str(names)] if isinstance(names, str | Path) else [str(name) for name in names]
