"""Tests that input formats are found by name, and that formats of packages affect neither each other nor built-ins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.support.rows import read
from tests.support.scoring import install

from traceweir.streams.cli.input_options import DEFAULT_FORMAT
from traceweir.streams.intake.formats.base import (
    AgentRecord,
    DocumentRecords,
    InputContext,
    InputFormat,
    records_of_rows,
)
from traceweir.streams.intake.formats.documents import Document, InputError
from traceweir.streams.intake.formats.registry import (
    BUILT_IN,
    GROUP,
    UnusableFormatError,
    input_format,
    known_formats,
)
from traceweir.streams.intake.formats.tables import Row, number, text

Install = Callable[[str, Mapping[str, str]], None]
VOTES_PATH = f"{__name__}:VOTES"


def _votes(rows: Iterable[Row], context: InputContext) -> Iterator[DocumentRecords]:
    def records(row: Row) -> list[AgentRecord]:
        if "voter" not in row.columns:
            raise context.row_error(row, "column 'voter': is empty; name who voted")
        return [AgentRecord("event", str(row.columns["voter"]), b"{}")]

    return records_of_rows(rows, records, context)


VOTES = InputFormat(name="votes", description="votes", read_rows=_votes, columns={"voter": text, "stars": number})


@pytest.fixture
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package with a given name that provides input formats."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda name, entry_points: install(tmp_path, name, entry_points, GROUP)


def test_the_built_in_formats_are_known_by_name() -> None:
    assert known_formats() == [
        "traceweir",
        "openai-chat",
        "adk-session",
        "adk-eval-result",
        "databricks-inference-table",
        "databricks-agent-evaluation",
        "otlp",
    ]
    assert [input_format(name).name for name in known_formats()] == list(BUILT_IN)


def test_the_default_format_of_the_command_line_is_built_in() -> None:
    assert DEFAULT_FORMAT in BUILT_IN


def test_the_format_of_an_installed_package_reads_tables_and_objects(install_package: Install, tmp_path: Path) -> None:
    install_package("traceweir-votes", {"votes": VOTES_PATH})
    (tmp_path / "votes.csv").write_text("voter,stars\nann,5\n,4\n")
    (tmp_path / "votes.jsonl").write_text('{"voter": "ann"}\n{"stars": 4}\nnot JSON\n')

    table, lines = read(tmp_path / "votes.csv", "votes"), read(tmp_path / "votes.jsonl", "votes")

    assert [[record.session_id for record in each.records] for each in table] == [["ann"], []]
    assert [[record.session_id for record in each.records] for each in lines] == [["ann"], [], []]
    assert [str(each.problem).removeprefix(f"{tmp_path}/") for each in lines[1:]] == [
        "votes.jsonl: row 2, column 'voter': is empty; name who voted",
        "votes.jsonl: row 3 is not JSON (invalid literal, expected 'null': line 1 column 1 (char 0))",
    ]
    assert known_formats()[-1] == "votes"


def test_an_unknown_format_is_reported_with_the_known_formats(install_package: Install) -> None:
    install_package("traceweir-votes", {"votes": VOTES_PATH})
    with pytest.raises(UnusableFormatError, match=r"format 'csv': there is no such format; .*openai-chat, .*votes"):
        input_format("csv")


def test_two_packages_that_provide_the_same_format_are_both_reported(install_package: Install) -> None:
    install_package("package-one", {"votes": VOTES_PATH})
    install_package("package-two", {"votes": VOTES_PATH})
    with pytest.raises(UnusableFormatError, match="package-one and package-two offer a format of this name"):
        input_format("votes")


def test_a_built_in_format_cannot_be_replaced(install_package: Install) -> None:
    install_package("package-one", {"openai-chat": VOTES_PATH})
    with pytest.raises(UnusableFormatError, match="cannot be replaced, but package-one offers a format of that name"):
        input_format("openai-chat")


def test_a_package_that_cannot_be_imported_is_reported_with_the_reason(install_package: Install) -> None:
    install_package("package-one", {"broken": "tests.support.no_such_module:FORMAT"})
    with pytest.raises(UnusableFormatError, match=r"of package-one cannot be imported: ModuleNotFoundError: .*no_such"):
        input_format("broken")


def test_a_broken_package_has_no_effect_on_other_formats(install_package: Install, tmp_path: Path) -> None:
    install_package("package-one", {"broken": "tests.support.no_such_module:FORMAT"})
    (tmp_path / "events.jsonl").write_text('{"type": "session.ended", "session_id": "s"}')
    assert [len(each.records) for each in read(tmp_path / "events.jsonl")] == [1]


@pytest.mark.parametrize("place", [f"{__name__}:GROUP", "builtins:dict", f"{__name__}:InputFormat"])
def test_an_entry_point_must_be_an_input_format(install_package: Install, place: str) -> None:
    install_package("package-one", {"thing": place})
    with pytest.raises(UnusableFormatError, match="of package-one is not an InputFormat"):
        input_format("thing")


def test_a_format_must_have_the_name_of_its_entry_point(install_package: Install) -> None:
    install_package("package-one", {"polls": VOTES_PATH})
    with pytest.raises(UnusableFormatError, match="of package-one has the name 'votes'; use the same name"):
        input_format("polls")


def test_an_unusable_format_error_is_an_input_error() -> None:
    assert issubclass(UnusableFormatError, InputError)


def test_a_format_without_a_reader_is_rejected() -> None:
    with pytest.raises(ValueError, match="'nothing': reads nothing; set read_documents, read_rows or both"):
        InputFormat(name="nothing", description="nothing")


def test_a_format_of_whole_files_reads_no_documents() -> None:
    with pytest.raises(ValueError, match="'both': reads whole files with read_streams; leave out read_documents"):
        InputFormat(
            name="both", description="both", read_documents=lambda *_: iter(()), read_streams=lambda *_: iter(())
        )


def test_a_format_of_rows_must_name_its_columns() -> None:
    with pytest.raises(ValueError, match="'votes': set read_rows and columns together, or neither of them"):
        InputFormat(name="votes", description="votes", read_rows=_votes)


def test_a_format_that_was_written_before_the_builder_of_records_gives_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "prompt-answer", {"prompt-answer": "tests.support.prompt_answer:PROMPT_ANSWER"}, GROUP)
    document = Document(1, b'{"prompt": "What is RAG?", "answer": "Retrieval with generation.", "seconds": 1.5}')
    context = InputContext("answers.jsonl", datetime(2026, 1, 31, 12, tzinfo=UTC))

    (found,) = input_format("prompt-answer").read([document], context)

    session = "d47638f7-a370-5fa4-bb1e-61c7f4e5a420"
    head = f'{{"session_id":"{session}","occurred_at":"2026-01-31T12:00:00+00:00","type":'
    row = '{"request":"What is RAG?","response":"Retrieval with generation.","execution_time_ms":1500.0}'
    assert found.records == [
        AgentRecord("event", session, f'{head}"invocation.recorded","row":{row}}}'.encode()),
        AgentRecord("event", session, f'{head}"session.ended"}}'.encode()),
    ]
