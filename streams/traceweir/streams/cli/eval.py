"""`traceweir eval`: scores recorded sessions against eval sets."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.settings import Settings, load_settings
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.terminal import complain, mute_clients, progress_bar
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.registry import input_format
from traceweir.streams.lab.evals.configs import clashing, criteria_for
from traceweir.streams.lab.evals.evaluate import beside
from traceweir.streams.lab.evals.files import EvalFile, chosen_files, read_eval_file
from traceweir.streams.lab.evals.formatted_recordings import read_formatted_recordings
from traceweir.streams.lab.evals.junit import junit_xml
from traceweir.streams.lab.evals.recordings import Runs, read_recordings
from traceweir.streams.lab.evals.results import Report
from traceweir.streams.lab.evals.scoring import ScoredFile, score_files
from traceweir.streams.lab.evals.text import (
    detail_lines,
    failure_lines,
    judges_line,
    shown,
    summary_lines,
    verdict_line,
)
from traceweir.streams.lab.evals.writing import write_whole
from traceweir.streams.scoring.judges.offline import judges_from_file


def eval_files(
    arguments: Sequence[str],
    *,
    sessions: Sequence[str],
    from_kafka: bool,
    format_name: str | None,
    matches: Mapping[str, str],
    config: Path | None,
    junit: Path | None,
    num_runs: int | None,
    detailed: bool,
    as_json: bool,
) -> int:
    """Scores the cases, prints the results, and returns the exit code.

    `format_name` is the input format of `sessions`; None: each document is recognized.

    Raises:
        InputError: a file cannot be read or written.
        ConfigError: a config cannot be used.
        InvalidSettingsError: the environment cannot be used.
        KafkaUnreachableError: no broker answers.
        SessionsUnreadableError: the sessions topic cannot be read.
        JudgeUnavailableError: a criterion asks a judge, and the [judge] extra is missing or the verdict file cannot be
            used.
    """
    settings = kafka_settings() if from_kafka else load_settings()
    files = [read_eval_file(each) for each in chosen_files(arguments)]
    if junit is not None and not junit.absolute().parent.is_dir():
        raise InputError(
            f"{junit}: the folder {junit.absolute().parent} does not exist. Create the folder, or name another file."
        )
    criteria = [criteria_for(file.path, config, alone=len(files) == 1) for file in files]
    for file, each in zip(files, criteria, strict=True):
        complain(f"{file.path}: {each.origin}")
        for line in file.unread:
            complain(line)
        if file.old:
            complain(f"{file.path}: is in one of ADK's old formats; `traceweir migrate` rewrites it")
    runs = _recorded(settings, files, sessions, matches, from_kafka=from_kafka, format_name=format_name)
    with judges_from_file([each.plan for each in criteria], settings) as judges:
        scored = [
            ScoredFile(file, each.plan, found, matches, judges[each.plan.digest])
            for file, each, found in zip(files, criteria, runs, strict=True)
        ]
        with progress_bar("cases scored") as advance:
            report = asyncio.run(
                score_files(
                    scored,
                    now=utc_now,
                    num_runs=num_runs,
                    timeout_s=settings.score_timeout_s,
                    judge_timeout_s=settings.judge_timeout_s,
                    progress=advance,
                )
            )
    if junit is not None:
        write_whole(junit, junit_xml(report))
    if as_json:
        for case in report.cases:
            sys.stdout.write(
                json.dumps(case.as_json()) + "\n"
                # json.dumps writes ASCII, which every terminal encoding can represent.
            )
    else:
        _print(report, detailed=detailed)
    if not report.cases:
        complain("no case was scored, because the eval sets contain no case; name an eval set with cases")
    for missing in report.missing_verdicts():
        complain(verdict_line(missing))
    for metric, counts in report.several_judges().items():
        complain(judges_line(metric, counts))
    return 0 if report.passed else FAILED


def _recorded(
    settings: Settings,
    files: Sequence[EvalFile],
    sessions: Sequence[str],
    matches: Mapping[str, str],
    *,
    from_kafka: bool,
    format_name: str | None,
) -> list[Runs]:
    if not sessions and not from_kafka:
        return [beside(file.path) for file in files]
    names = [(file.path, case.eval_id) for file in files for case in file.cases]
    clashing(names)
    known = {name for _, name in names}
    if unknown := sorted(matches.keys() - known):
        raise InputError(
            f"--match: the selected eval sets have no case {', '.join(repr(shown(each)) for each in unknown)}."
        )
    wanted = frozenset(matches.get(name, name) for name in known)
    if not from_kafka:
        if format_name is None:
            return [read_recordings(sessions, wanted, complain)] * len(files)
        return [read_formatted_recordings(sessions, input_format(format_name), wanted, complain)] * len(files)
    from traceweir.streams.lab.evals.kafka_sessions import read_sessions

    mute_clients()
    found = asyncio.run(read_sessions(settings, wanted))
    return [{name: [run] for name, run in found.items()}] * len(files)


def _print(report: Report, *, detailed: bool) -> None:
    stdout = Console(highlight=False, soft_wrap=True)
    for line in summary_lines(report):
        stdout.print(Text(line))
    for case in report.cases:
        for line in detail_lines(case) if detailed else failure_lines(case) if case.status != "PASSED" else ():
            stdout.print(Text(line))


def parsed_matches(pairs: Sequence[str]) -> dict[str, str]:
    """Parses `CASE=SESSION` pairs into a mapping.

    Raises:
        ValueError: a text has another form, or an eval id has two session ids.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        eval_id, equals, session_id = pair.partition("=")
        if not (eval_id and equals and session_id):
            raise ValueError(f"{pair!r} is not of the form CASE=SESSION")
        if found.setdefault(eval_id, session_id) != session_id:
            raise ValueError(f"{eval_id!r} is matched to two sessions")
    return found
