"""pytest plugin: makes a test of each case of a `*.test.json` that has a file of recorded sessions beside it.

pytest loads this module in every run of every project that has Traceweir installed. The module therefore imports the
rest of Traceweir only after pytest has found such a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from traceweir.streams.lab.evals.case_by_case import CaseByCase
    from traceweir.streams.lab.evals.results import CaseResult

OPTION = "traceweir_eval"
_SCORING: pytest.StashKey[CaseByCase] = pytest.StashKey()
_SUFFIX = ".test.json"
_SESSIONS = (".sessions.json", ".sessions.jsonl")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares the ini option."""
    parser.addini(
        OPTION,
        "Google ADK's *.test.json as tests: `auto` (files with <name>.sessions.json or .jsonl in the same folder), `on` "
        "(all), `off`",
        default="auto",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Returns a collector for a `*.test.json` that the ini option selects, None for any other file."""
    if not file_path.name.endswith(_SUFFIX):
        return None
    wanted = parent.config.getini(OPTION)
    if wanted not in ("auto", "on", "off"):
        raise pytest.UsageError(f"{OPTION} must be auto, on or off, not {wanted!r}")
    stem = file_path.name.removesuffix(_SUFFIX)
    has_sessions = any(file_path.with_name(stem + suffix).is_file() for suffix in _SESSIONS)
    if wanted == "off" or not (has_sessions or wanted == "on"):
        return None
    collector: pytest.Collector = CaseFile.from_parent(parent, path=file_path)
    return collector


class CaseFile(pytest.File):
    """A `*.test.json`."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yields one test per eval case."""
        from dataclasses import replace

        from traceweir.schemas.text import printable
        from traceweir.scorers.evaluation.config_problems import ConfigError
        from traceweir.streams.intake.formats.documents import InputError
        from traceweir.streams.lab.evals.evaluate import prepared
        from traceweir.streams.lab.evals.files import Chosen

        try:
            [scored] = prepared([Chosen(self.path)], None)
        except (InputError, ConfigError) as error:
            raise self.CollectError(str(error)) from None
        for case in scored.file.cases:
            only = replace(scored, file=replace(scored.file, cases=(case,)))
            yield Case.from_parent(self, name=printable(case.eval_id), scored=only)


class Case(pytest.Item):
    """One eval case, scored on its recorded session."""

    def __init__(self, *, scored: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._scored = scored

    def runtest(self) -> None:
        """Scores the case; raises if its status is not PASSED or the case could not be scored."""
        from traceweir.streams.base.errors import InvalidSettingsError
        from traceweir.streams.lab.evals.text import failure_lines
        from traceweir.streams.scoring.judges.errors import JudgeUnavailableError

        try:
            result = self._scoring().score(self._scored)
        except (InvalidSettingsError, JudgeUnavailableError) as error:
            raise NotScored(str(error)) from None
        if result.status != "PASSED" or any(failure_lines(result)):
            raise CaseFailed(result)

    def _scoring(self) -> CaseByCase:
        if (scoring := self.config.stash.get(_SCORING, None)) is None:
            from traceweir.streams.lab.evals.case_by_case import CaseByCase

            scoring = self.config.stash[_SCORING] = CaseByCase()
            self.config.add_cleanup(scoring.close)
        return scoring

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Returns the expected and the actual values in place of a traceback."""
        if isinstance(excinfo.value, CaseFailed):
            from traceweir.streams.lab.evals.text import detail_lines, failure_lines

            case = excinfo.value.case
            return "\n".join([*failure_lines(case), "", *detail_lines(case)]).rstrip()
        if isinstance(excinfo.value, NotScored):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Returns the file and the name of the case for pytest's report."""
        return self.path, None, f"eval case {self.name}"


class CaseFailed(Exception):  # noqa: N818  # an outcome that the caller handles
    """The status of a case is not PASSED."""

    def __init__(self, case: CaseResult) -> None:
        super().__init__(case.eval_id)
        self.case = case


class NotScored(Exception):  # noqa: N818  # an outcome that the caller handles
    """A case could not be scored; the message states the way out."""
