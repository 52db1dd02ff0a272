"""`traceweir score`: scores a file in this process, without Kafka."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from traceweir.schemas.figures import counted
from traceweir.streams.cli.errors import FAILED, INTERRUPTED, NO_DOCUMENT
from traceweir.streams.cli.score.output import OutputFormat, Write, writer_of
from traceweir.streams.cli.score.table import ScoreTable
from traceweir.streams.cli.score.tally import ScoreTally, read_line
from traceweir.streams.cli.terminal import complain, rate_bar

if TYPE_CHECKING:
    from traceweir.scorers.evaluation.plan import Plan
    from traceweir.streams.tools.offline.scoring_run import ScoringRun


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """The options of the command."""

    format_name: str
    """The input format of the file, by its name."""
    embedder: str | None
    """Replaces the value of `TRACEWEIR_EMBEDDER`."""
    task_domain: str
    """Domain of a transcript without a domain of its own."""
    output_format: OutputFormat
    """`json` and `mlflow` print only JSON on stdout, one Score or one assessment of MLflow per line."""
    jobs: int | None = None
    """Number of processes that score; None: by the number of cores and of documents."""
    out: Path | None = None
    """A file that gets all scores: `.parquet`, `.csv` or `.jsonl`."""


def score_files(paths: Sequence[str], plan: Plan, options: ScoreOptions) -> int:
    """Scores the files of one input, prints the scores as they come, and returns the exit code.

    Args:
        paths: The files; `-` is standard input.
        plan: The criteria.
        options: The options of the command.

    Raises:
        InputError: the file cannot be read.
        InvalidSettingsError: the environment cannot be used.
        EmbedderUnavailableError: the embedder cannot be loaded.
        JudgeUnavailableError: a criterion asks a judge, and the [judge] extra is missing or the verdict file cannot be
            used.
        TemporaryFileError: a temporary file cannot be written or read.
        ScoringProcessDiedError: no process that scores can be started.
        ConfigError: a scorer cannot be sent to the processes that `--jobs` demands.
    """
    from traceweir.scorers.evaluation.criteria_text import criteria_text
    from traceweir.streams.base.clock import utc_now
    from traceweir.streams.base.settings import load_settings
    from traceweir.streams.intake.formats.documents import name_of
    from traceweir.streams.intake.formats.files import open_inputs, read_inputs
    from traceweir.streams.intake.formats.registry import input_format
    from traceweir.streams.intake.formats.unread_keys import UnreadKeys
    from traceweir.streams.scoring.embedders.loading import load_embedder
    from traceweir.streams.scoring.judges.offline import judging_from_file
    from traceweir.streams.tools.offline.scoring_run import ScoringRun, why_one_job

    settings = load_settings()
    with judging_from_file(plan, settings) as judging, open_inputs(paths) as streams:
        source = name_of(streams[0])
        loaded = load_embedder(options.embedder or settings.embedder)
        if options.jobs is not None and options.jobs > 1 and (why := why_one_job(plan, loaded)) is not None:
            complain(f"--jobs {options.jobs} has no effect: {why}")
        unread_keys = UnreadKeys()
        documents = read_inputs(
            streams,
            input_format(options.format_name),
            task_domain=options.task_domain,
            max_session_bytes=settings.segment_max_bytes,
            visibility=settings.otlp_visibility,
            unread_keys=unread_keys,
        )
        with ScoringRun(plan, loaded, settings, clock=utc_now, judging=judging, jobs=options.jobs) as run:
            output = _Output(plan, options.output_format, None if judging is None else judging.bill.text)
            try:
                with _file(options.out) as write:
                    with rate_bar("documents read", "documents") as advance:
                        run.read(documents, lambda read: advance(read, None))
                    asyncio.run(output.write_all(run, write))
            except KeyboardInterrupt:
                sys.stdout.flush()
                complain(output.interrupted(run, options.out))
                return INTERRUPTED
            if plan.is_default:
                complain(criteria_text(plan, None))
            output.finish(run)
            for problem in run.problems:
                # A problem found by the reader already names its place.
                complain(
                    problem.detail
                    if problem.reason is None
                    else f"{source}: document {problem.document}: {problem.reason}: {problem.detail}"
                )
            for line in unread_keys.lines(source):
                complain(line)
            for note in output.tally.notes():
                complain(note)
            failures = [] if run.documents else [NO_DOCUMENT.format(source)]
            failures += output.tally.failures()
            for failure in failures:
                complain(failure)
            return FAILED if run.problems or failures else 0


def _file(path: Path | None) -> AbstractContextManager[Write | None]:
    if path is None:
        return nullcontext()
    from traceweir.streams.cli.score.file import score_file

    return score_file(path)


def _shown_at_once(plan: Plan) -> Collection[str] | None:
    """Returns the names of all metrics that a run can show, if it shows each session at once; None if it does not."""
    # The next answer of a judge can take a minute; without one, a table of everything comes as soon.
    return [*(metric.name for metric in plan.metrics), "trace_value", "gate"] if plan.judged else None


class _Output:
    """Writes and counts the scores of a run."""

    def __init__(self, plan: Plan, output_format: OutputFormat, bill: Callable[[], str] | None) -> None:
        self._bill = bill
        self.tally = ScoreTally(plan.judged, has_config=not plan.is_default)
        self._table = ScoreTable(_shown_at_once(plan)) if output_format is OutputFormat.TEXT else None
        self._write = writer_of(output_format, plan)
        self._sessions = 0

    async def write_all(self, run: ScoringRun, to_file: Write | None) -> None:
        """Writes the scores of all sessions to stdout, and to a file if there is one."""
        # Scores that are printed on the terminal show the progress themselves.
        hidden = self._table is None and sys.stdout.isatty()
        with rate_bar("sessions scored", "sessions", hidden=hidden, phrase=self._bill) as bar:
            async with aclosing(run.sessions()) as sessions:
                async for session in sessions:
                    for score in session.scores:
                        line = read_line(score)
                        self.tally.add(line)
                        if self._table is not None:
                            self._table.add(line)
                    self._write(session.scores)
                    if self._table is not None and session.is_last:
                        with bar.aside():
                            self._table.end_session()
                    if to_file is not None:
                        to_file(session.scores)
                    self._sessions += 1
                    bar(self._sessions, run.total)

    def finish(self, run: ScoringRun) -> None:
        """Prints what follows after all scores."""
        if self._table is not None:
            counts = (
                f"{counted(run.documents, 'document')}, {counted(run.total, 'session')}, "
                f"{counted(run.duplicates, 'duplicate')}, {counted(len(run.problems), 'problem')}"
            )
            self._table.print(self.tally, counts, run.total)

    def interrupted(self, run: ScoringRun, out: Path | None) -> str:
        """Returns what was written before Ctrl-C."""
        kept = "" if out is None else f"; {out} was not written"
        if not run.total:
            return f"interrupted after {counted(run.documents, 'document')} of the input; nothing was scored{kept}"
        scores = counted(self.tally.scores, "score")
        written = "they are on standard output" if self._table is None else self._table.shown
        return f"interrupted: {self._sessions} of {counted(run.total, 'session')} have been scored, with {scores}; {written}{kept}"


def read_config(path: Path | None) -> Plan:
    """Returns the plan of a config file; without a file, a plan with the default criteria.

    Raises:
        ConfigError: the file cannot be read or used; the error lists every problem.
    """
    from traceweir.scorers.evaluation.plan import read_plan

    return read_plan(None) if path is None else read_config_file(path)[0]


def read_config_file(path: Path) -> tuple[Plan, bytes]:
    """Returns the plan of a config file, and the content of the file.

    Raises:
        ConfigError: the file cannot be read, is too large, or cannot be used; the error lists every problem.
    """
    from traceweir.scorers.evaluation.config_problems import ConfigError
    from traceweir.scorers.evaluation.plan import read_plan
    from traceweir.streams.lab.evals.json_text import MAX_BYTES

    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read ({error.strerror}); name a readable JSON file"]) from None
    if len(text) > MAX_BYTES:
        raise ConfigError([f"{path}: is larger than the maximum of {MAX_BYTES // 1024**2} MiB; name a JSON file"])
    try:
        return read_plan(text), text
    except ConfigError:
        _refuse_other_document(path, text)
        raise


def _refuse_other_document(path: Path, text: bytes) -> None:
    """Raises ConfigError with what a file is, if it is evidently another kind of document than a config."""
    # Imported here, because a worker with a config that it can use needs no input format.
    from traceweir.scorers.evaluation.config_problems import ConfigError
    from traceweir.streams.intake.formats.other_documents import CONFIG
    from traceweir.streams.intake.formats.recognition import misplaced

    if (what := misplaced(text, CONFIG)) is not None:
        raise ConfigError([f"{path}: {what}"]) from None
