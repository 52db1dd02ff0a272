"""The Python interface: `evaluate_files` scores recorded sessions as ADK's `AgentEvaluator.evaluate` scores an agent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from traceweir.scorers.judge import Judge
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings, load_settings
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.configs import clashing, criteria_for
from traceweir.streams.lab.evals.files import Chosen, chosen_files, read_eval_file
from traceweir.streams.lab.evals.recordings import Runs, read_recordings, sessions_beside
from traceweir.streams.lab.evals.results import Report
from traceweir.streams.lab.evals.scoring import ScoredFile, score_files
from traceweir.streams.lab.evals.text import detail_lines, failure_lines
from traceweir.streams.scoring.judges.offline import judges_from_file

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
    """Scores recorded sessions against eval sets; raises AssertionError if a criterion misses its threshold.

    Values are pooled as ADK's `AgentEvaluator` pools them: the mean over all invocations of all runs, per case and
    criterion. The function can be called while an event loop runs. Judged criteria ask the judge of the config and of
    `TRACEWEIR_JUDGE_...`, as in `traceweir eval`, and share its verdict file.

    Args:
        path: A file, `FILE:case1,case2`, a folder of `*.test.json`, or several of these.
        sessions: Files of recorded sessions, one or more; matched by eval id. None: the file beside each eval set, such
            as `trip.sessions.json` or `.jsonl` beside `trip.test.json`.
        num_runs: Number of recorded runs that each case needs and uses. None: all runs, at least one.
        config: Criteria for all files. None: `test_config.json` as ADK finds it, or ADK's default.
        judge: Replaces the judge of the config.
        print_detailed_results: Whether to print each case in full to stdout.

    Returns:
        The report with all measurements.

    Raises:
        AssertionError: a case is not PASSED, or there is no case; the message has a line per reason, worded as in ADK.
        InputError: a file cannot be read.
        ConfigError: a config cannot be used.
        InvalidSettingsError: the environment cannot be used.
        JudgeUnavailableError: a criterion asks a judge, and the [judge] extra is missing or the verdict file cannot be
            used.
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
    # ADK's AgentEvaluator also fails a passing case if one of its criteria could not be measured.
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
    """Returns files with their criteria and recorded sessions.

    Args:
        chosen: The files.
        sessions: Files of recorded sessions for all eval sets; None: the file beside each eval set.
        config: Criteria for all files.

    Raises:
        InputError: a file cannot be read, or has no recorded sessions beside it.
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
    """Returns the sessions recorded beside an eval set.

    Raises:
        InputError: no such file exists, or the file cannot be read.
    """
    found = sessions_beside(path)
    if found is None:
        stem = path.name.removesuffix(".json").removesuffix(".test").removesuffix(".evalset")
        raise InputError(
            f"{path}: no recorded sessions are given, and neither {stem}.sessions.json nor {stem}.sessions.jsonl exists "
            "in its folder. Traceweir never runs the agent: record its sessions, and name the file."
        )
    return read_recordings([str(found)])


def _run(scored: Sequence[ScoredFile], num_runs: int | None, judge: Judge | None, settings: Settings) -> Report:
    def run() -> Report:
        plans = [each.plan for each in scored] if judge is None else []
        with judges_from_file(
            plans,
            settings,
            # In this thread: only the thread that opens the SQLite file can use it.
        ) as judges:
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
    # A running loop (of a notebook or an async test) cannot be entered again, so another thread runs its own loop.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def _listed(names: Names) -> list[str]:
    return [str(names)] if isinstance(names, str | Path) else [str(name) for name in names]
