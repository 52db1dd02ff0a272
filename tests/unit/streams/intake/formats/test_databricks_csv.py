"""Tests evaluation rows from CSV files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from tests.support.row_files import csv_file
from tests.support.rows import ROW, events, problems, read

from traceweir.streams.intake.formats.documents import InputError


async def test_a_cell_that_is_not_utf_8_rejects_only_its_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("request,response\nq1,né\n".encode() + "q2,né\n".encode("cp1252") + "q3,안녕\n".encode())
    found = read(path)
    assert problems(found, path) == [
        "row 2, column 'response': is not UTF-8 (byte 0xe9 after 1 characters); save the file as UTF-8"
    ]
    assert [event["row"]["response"] for event in events(found)] == ["né", "안녕"]


def test_a_csv_file_can_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xef\xbb\xbfrequest,response\nq,a\n")
    assert events(read(path))[0]["row"] == {"request": "q", "response": "a"}


@pytest.mark.parametrize(
    ("line", "expected_problem"),
    [
        ("q", "row 1 has 1 cells, but the header names 3 columns"),
        ("q,a,[],more", "row 1 has 4 cells, but the header names 3 columns"),
        (
            'q,"a"b,[]',
            "row 1 is not valid CSV (',' expected after '\"'); check whether a quote is missing, or is not doubled inside a cell",
        ),
        ("q,a,[f]", "row 1, column 'expected_facts': is not JSON ("),
        ("q,a,\"['f']\"", "row 1, column 'expected_facts': is not JSON ("),
        ("q,a,fact", "row 1, column 'expected_facts': must be iterable of strings like [str], not text"),
        (
            "\"{'messages': []}\",a,[]",
            "row 1, column 'request': is an object in Python's notation, not JSON; write lists",
        ),
    ],
)
def test_an_invalid_row_of_csv_is_reported_and_other_rows_are_read(
    line: str, expected_problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"request,response,expected_facts\n{line}\nq2,b,[]\n", "utf-8")
    found = read(path)
    [problem] = problems(found, path)
    assert problem.startswith(expected_problem)
    assert [event["row"]["request"] for event in events(found)] == ["q2"]


@pytest.mark.parametrize(
    ("cell", "read_as"),
    [
        ('[{"role": "user", "content": "q"}]', [{"role": "user", "content": "q"}]),
        ("[1, 2] sum?", "[1, 2] sum?"),
        ("[1, 2]", "[1, 2]"),
        ("[]", "[]"),
    ],
)
def test_a_question_that_is_a_list_of_messages_is_read(cell: str, read_as: object, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["request", "response"], [cell, "a"]])
    assert events(read(path))[0]["row"]["request"] == read_as


def test_an_answer_that_is_the_json_of_a_completion_is_read(tmp_path: Path) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "a"}}]}
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["request", "response"], ["q", json.dumps(answer)]])
    assert events(read(path))[0]["row"]["response"] == answer


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("ChatCompletion(id='c', choices=[Choice(index=0)])", "is Python's text of an object, and not the answer"),
        ("content='a' additional_kwargs={} response_metadata={}", "is Python's text of an object, and not the answer"),
        ("<__main__.Answer object at 0x7f8b3c>", "is Python's text of an object, and not the answer"),
        ("<Response [200]>", "is Python's text of an object, and not the answer"),
        ("{'content': 'a'}", "is an object in Python's notation, not JSON"),
        ("[{'role': 'assistant', 'content': 'a'}]", "is a list in Python's notation, not JSON"),
    ],
)
def test_an_object_as_python_prints_it_is_no_answer(answer: str, problem: str, tmp_path: Path) -> None:
    """In CSV as well as in JSON, where the text of the object stands in a string."""
    table = tmp_path / "rows.csv"
    with table.open("w", newline="") as stream:
        csv.writer(stream).writerows([["request", "response"], ["q", answer], ["q2", "HttpResponse(status=404)"]])
    lines = tmp_path / "rows.jsonl"
    lines.write_text(
        json.dumps({"request": "q", "response": answer})
        + '\n{"request": "q2", "response": "HttpResponse(status=404)"}\n'
    )
    for path in (table, lines):
        found = read(path)
        [said] = problems(found, path)
        assert said.startswith(f"row 1, column 'response': {problem}")
        assert [event["row"]["request"] for event in events(found)] == ["q2"]


PRINTED = "content='q' additional_kwargs={} response_metadata={}"


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ({"request": {"query": PRINTED}, "response": "a"}, "request"),
        ({"request": {"messages": [{"role": "user", "content": PRINTED}]}, "response": "a"}, "request"),
        ({"inputs": {"question": "{'messages': [{'role': 'user', 'content': 'q'}]}"}, "outputs": "a"}, "inputs"),
        ({"inputs": {"question": "q"}, "outputs": {"answer": PRINTED}}, "outputs"),
        ({"request": "q", "response": {"choices": [{"message": {"content": "{'content': 'a'}"}}]}}, "response"),
    ],
)
def test_an_object_as_python_prints_it_is_neither_question_nor_answer_inside_a_value(
    row: dict[str, object], column: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    [said] = problems(read(path), path)

    assert said.startswith(f"row 1, column '{column}': is ")
    assert "Python's" in said


@pytest.mark.parametrize(
    "row",
    [
        {
            "request": "q",
            "response": {
                "messages": [
                    {"role": "user", "content": "<Response [404]>"},
                    {"role": "assistant", "content": "not found"},
                ]
            },
        },
        {
            "request": {
                "messages": [
                    {"role": "user", "content": "q"},
                    {"role": "assistant", "content": "{'role': 'x'}"},
                    {"role": "user", "content": "and?"},
                ]
            },
            "response": "a",
        },
        {"request": "q", "response": {"output": "Response(status=404)"}},
        {"request": "{'role': 'user' gives a syntax error, why?", "response": "a"},
    ],
    ids=["the question in a response", "a former answer", "code in an answer", "code in a question"],
)
def test_a_row_is_read_if_neither_its_question_nor_its_answer_is_surely_printed(
    row: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")

    assert [each["row"] for each in events(read(path)) if "row" in each] == [row]


def test_the_newest_of_several_questions_is_no_object_that_python_prints(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    asked = [{"role": "user", "content": "q"}, {"role": "user", "content": PRINTED}]
    path.write_text(json.dumps({"request": {"messages": asked}, "response": "a"}) + "\n")
    [said] = problems(read(path), path)

    assert said.startswith("row 1, column 'request': is Python's text of an object")


def test_a_question_about_an_object_as_python_prints_it_stays_a_question(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    question = "{'role': 'user'} is refused. Why is {'role': 1} not?"
    path.write_text(json.dumps({"request": {"query": question}, "response": "a"}) + "\n")

    assert [each["row"]["request"] for each in events(read(path)) if "row" in each] == [{"query": question}]


def test_a_missing_closing_quote_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('request,response\nq,a\n"q2,b\n', "utf-8")
    found = read(path)
    assert problems(found, path) == [
        "row 2 is not valid CSV (unexpected end of data); check whether a quote is missing, or is not doubled inside a cell"
    ]
    assert len(events(found)) == 1


def test_a_response_that_is_json_stays_text_and_empty_cells_are_absent(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('request,response,expected_response,execution_time_ms\n{q},"{""content"": 1}",,12.5\n', "utf-8")
    assert events(read(path))[0]["row"] == {"request": "{q}", "response": '{"content": 1}', "execution_time_ms": 12.5}


def test_a_cell_beyond_the_field_size_limit_of_csv_is_read_and_the_limit_is_restored(
    tmp_path: Path,
) -> None:
    before = csv.field_size_limit()
    answer = "x" * (before + 1)
    [event] = events(read(csv_file(tmp_path / "rows.csv", {"request": "q", "response": answer})))
    assert (len(event["row"]["response"]), csv.field_size_limit()) == (len(answer), before)


def test_a_csv_cell_outside_the_format_can_have_any_encoding(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("request,\xe9,response\nq,\xe9,a\n".encode("cp1252"))
    assert events(read(path))[0]["row"] == ROW


def test_csv_columns_without_a_name_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("request,response,,\nq,a,,x\n", "utf-8")
    assert events(read(path))[0]["row"] == ROW


@pytest.mark.parametrize(
    ("behind", "scored", "expected_problem"),
    [
        ("q3,c\nq4,d\n", ["q"], "row 2 is not valid CSV (unexpected end of data); lines 3 to 6 "),
        ('q3,c\nq4,"d"\nq5,e\n', ["q", "q5"], "row 2 is not valid CSV (',' expected after '\"'); lines 3 to 6 "),
    ],
)
def test_lines_that_a_missing_quote_joins_into_a_row_are_reported(
    behind: str, scored: list[str], expected_problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f'request,response\nq,a\nq2,"b\n\n{behind}', "utf-8")
    found = read(path)
    [problem] = problems(found, path)
    assert problem == (
        f"{expected_problem}were read as one row, and nothing in these lines is scored; "
        "check whether a quote is missing, or is not doubled inside a cell"
    )
    assert [event["row"]["request"] for event in events(found)] == scored


def test_a_table_of_runs_of_langsmith_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text('id,run_type,inputs,outputs\nr,llm,"{""input"": ""q""}","{""output"": ""a""}"\n', "utf-8")
    with pytest.raises(InputError, match="each row looks like a run of LangSmith: no format reads runs"):
        read(path)


@pytest.mark.parametrize(
    "beside",
    [
        "traceId,spanId,name",
        "context.span_id,context.trace_id,name",
        "topic,partition,offset,value",
        "invocation_id,author,timestamp,content",
        "event,conversation_id",
        "chosen,rejected",
        "id,reason,topic,offset",
        "run_type,inputs",
    ],
)
def test_a_table_of_evaluation_rows_is_read_whatever_columns_stand_beside(beside: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"request,response,{beside}\nq,a{',' * len(beside.split(','))}\n", "utf-8")
    found = read(path)
    assert problems(found, path) == []
    assert [event["row"] for event in events(found)] == [{"request": "q", "response": "a"}]


def test_inputs_and_outputs_are_read_beside_columns_that_show_another_tool_without_them(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('inputs,outputs,event,conversation_id\n"{""q"": ""Hi""}","""a""",message,c\n', "utf-8")
    assert len(events(read(path))) == 1


def test_a_table_of_spans_without_columns_of_evaluation_rows_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "spans.csv"
    path.write_text("context.span_id,context.trace_id,name\ns,t,chat\n", "utf-8")
    with pytest.raises(InputError, match="each row looks like a span or a trace in another form than OTLP"):
        read(path)
