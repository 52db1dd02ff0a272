"""Reads the eval sets of a folder, and the runs that `traceweir eval --json` has written there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson
from pydantic import BaseModel, JsonValue, ValidationError

from traceweir.schemas.eval_set import EvalCase
from traceweir.schemas.score import Status
from traceweir.schemas.text import printable
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.lab.evals.files import Chosen, read_eval_file, read_text

MAX_FILES = 200
"""Maximum number of eval sets, and of runs, that are shown; of the runs, the latest ones."""
_SETS = ("*.evalset.json", "*.test.json")
_RUNS = ("*.jsonl",)


class RunCriterion(BaseModel):
    """The result of a criterion, as `traceweir eval --json` writes it."""

    metric: str
    threshold: float | None = None
    value: float | None = None
    status: Status
    not_evaluated_because: str | None = None
    cause: str | None = None
    rationale: str = ""


class RunTurn(BaseModel):
    """An invocation of a run beside the expected one."""

    run: int
    invocation_id: str = ""
    prompt: str = ""
    expected_response: str | None = None
    actual_response: str = ""
    expected_tool_calls: list[JsonValue] | None = None
    actual_tool_calls: list[JsonValue] = []
    scores: list[RunCriterion] = []


class RunCase(BaseModel):
    """The result of a case."""

    file: str
    eval_set_id: str
    eval_id: str
    status: Status
    problem: str | None = None
    runs: int = 0
    criteria: list[RunCriterion]
    invocations: list[RunTurn] = []

    @property
    def key(self) -> tuple[str, str]:
        """What identifies the case in another run."""
        return self.eval_set_id, self.eval_id


@dataclass(frozen=True)
class SetFile:
    """An eval set of the folder."""

    name: str
    """The file, relative to the folder."""
    path: Path
    cases: Sequence[EvalCase] = ()
    problem: str | None = None
    """Why the file cannot be read."""


@dataclass(frozen=True)
class RunFile:
    """A run: a file that `traceweir eval --json` has written."""

    name: str
    """The file, relative to the folder."""
    path: Path
    written_at: datetime
    """When the file was written, in UTC."""
    cases: Sequence[RunCase] = ()
    problem: str | None = None
    """Why a part of the file cannot be read."""

    def count(self, status: Status) -> int:
        """Returns how many cases have a status."""
        return sum(case.status == status for case in self.cases)


class EvalFolder:
    """The eval sets and the runs in a folder and below it; any thread may call the methods.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read: dict[tuple[Path, int, int], SetFile | RunFile | None] = {}
        self._reading = threading.Lock()

    def sets(self) -> list[SetFile]:
        """Returns the eval sets by name, at most `MAX_FILES`."""
        found = [self._known(path, self._set) for path in sorted(self._files(_SETS))[:MAX_FILES]]
        return [each for each in found if isinstance(each, SetFile)]

    def runs(self) -> list[RunFile]:
        """Returns the runs, the latest first, at most `MAX_FILES`. Other files of JSON lines are none."""
        paths = sorted(self._files(_RUNS), key=lambda path: (-_written_ns(path), str(path)))
        runs: list[RunFile] = []
        for path in paths:
            if len(runs) < MAX_FILES and isinstance(found := self._known(path, self._run), RunFile):
                runs.append(found)
        return runs

    def eval_set(self, name: str) -> SetFile | None:
        """Returns the eval set with a name; None if the folder has none."""
        return next((each for each in self.sets() if each.name == name), None)

    def run(self, name: str) -> RunFile | None:
        """Returns the run with a name; None if the folder has none."""
        return next((each for each in self.runs() if each.name == name), None)

    def _files(self, patterns: Sequence[str]) -> Iterator[Path]:
        try:
            yield from (path for pattern in patterns for path in self.path.rglob(pattern) if path.is_file())
        except OSError:
            # A folder below that may not be read has nothing to show.
            return

    def _known(
        self, path: Path, read: Callable[[Path, datetime], SetFile | RunFile | None]
    ) -> SetFile | RunFile | None:
        """Returns what a file has, which is read again when the file has changed."""
        try:
            status = path.stat()
        except OSError:
            return None
        key = (path, status.st_mtime_ns, status.st_size)
        with self._reading:
            if key not in self._read:
                for former in [each for each in self._read if each[0] == path]:
                    del self._read[former]
                self._read[key] = read(path, datetime.fromtimestamp(status.st_mtime, UTC))
            return self._read[key]

    def _set(self, path: Path, written_at: datetime) -> SetFile:
        name = str(path.relative_to(self.path))
        try:
            return SetFile(name, path, read_eval_file(Chosen(path)).cases)
        except InputError as error:
            return SetFile(name, path, problem=printable(str(error), 500))

    def _run(self, path: Path, written_at: datetime) -> RunFile | None:
        name = str(path.relative_to(self.path))
        try:
            lines = [line for line in read_text(path).split("\n") if line.strip()]
        except InputError:
            # Recorded sessions can be as large as they like.
            return None
        if not lines or not _is_run(lines[0]):
            return None
        cases = []
        for number, line in enumerate(lines, 1):
            try:
                cases.append(RunCase.model_validate_json(line))
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(map(str, first["loc"]))
                problem = f"line {number} is no result of a case: {place}: {first['msg']}"
                return RunFile(name, path, written_at, cases, printable(problem, 500))
        return RunFile(name, path, written_at, cases)


@dataclass(frozen=True)
class CasePair:
    """A case of two runs."""

    eval_set_id: str
    eval_id: str
    first: RunCase | None
    second: RunCase | None

    @property
    def change(self) -> str:
        """What the second run changes: `regressed`, `fixed`, `same`, or that only one run has the case."""
        if self.first is None or self.second is None:
            return "only in the second" if self.first is None else "only in the first"
        passed = self.first.status == "PASSED", self.second.status == "PASSED"
        return {(True, False): "regressed", (False, True): "fixed"}.get(passed, "same")

    @property
    def criteria(self) -> list[tuple[str, RunCriterion | None, RunCriterion | None]]:
        """The criteria of both, each with its name."""
        first, second = (
            {each.metric: each for each in case.criteria} if case is not None else {}
            for case in (self.first, self.second)
        )
        return [(name, first.get(name), second.get(name)) for name in dict.fromkeys((*first, *second))]


def paired(first: RunFile, second: RunFile) -> list[CasePair]:
    """Returns the cases of two runs: those that regressed first, then those that were fixed, then the others."""
    before, after = ({case.key: case for case in run.cases} for run in (first, second))
    pairs = [CasePair(*key, before.get(key), after.get(key)) for key in dict.fromkeys((*before, *after))]
    rank = {"regressed": 0, "fixed": 1}
    return sorted(pairs, key=lambda pair: rank.get(pair.change, 2))


def _is_run(line: str) -> bool:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and {"eval_id", "eval_set_id", "status", "criteria"} <= found.keys()


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
