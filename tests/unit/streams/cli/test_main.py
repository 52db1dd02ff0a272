"""The command line: what it prints where, its exit codes, and that no error is a traceback."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer
from confluent_kafka.admin import AdminClient
from tests.support.command_line import Ended, Run
from tests.support.scoring import trace_document

from traceweir.schemas.score import Score
from traceweir.streams.cli.main import app
from traceweir.streams.formats.registry import BUILT_IN
from traceweir.streams.kafka.embedded_broker import EmbeddedBroker

COMMANDS = [
    *("demo", "broker", "worker", "emit", "score", "topics create", "topics check"),
    *("dlq list", "dlq show", "dlq replay", "eval", "evalset add", "migrate"),
]
WRONG_CONFIG = {"criteria": {"no_such_metric": 1, "response_match_score": 2}, "trace_value": {"weight": {}}}
EVENT = b'{"type": "tool.called", "session_id": "s1", "name": "find", "occurred_at": "2026-01-31T11:00:00Z"}'


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, *documents: Any) -> str:
        lines = [document if isinstance(document, bytes) else orjson.dumps(document) for document in documents]
        (tmp_path / name).write_bytes(b"\n".join(lines))
        return str(tmp_path / name)

    return write


Write = Callable[..., str]


def trace(number: int, **changes: Any) -> dict[str, Any]:
    """A trace whose value is over the gate's threshold."""
    steps = [
        {"step_id": 0, "type": "thought", "content": "Look."},
        {"step_id": 1, "type": "tool_call", "tool": {"name": "find"}},
        {"step_id": 2, "type": "error_recovery", "tool": {"name": "search"}},
        {"step_id": 3, "type": "observation", "content": "Two."},
    ]
    return trace_document(id=f"kp:trace:{number}", **{"steps": steps, "outcome": {"confidence": 1.0}, **changes})


# --- help


@pytest.mark.parametrize("command", COMMANDS)
def test_every_commands_help_ends_with_an_example_of_it(command: str, run: Run) -> None:
    ended = run(*command.split(), "--help")

    text = ended.out[: ended.out.index("─ Options")]
    assert f"traceweir {command}" in text[text.index("Example:") :]
    assert ended.code == 0


@pytest.mark.parametrize("command", ["emit", "score"])
def test_help_says_what_each_format_is(command: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "600")
    text = run(command, "--help").out
    assert f"<{'|'.join(BUILT_IN)}>" in text
    assert [
        each.name for each in BUILT_IN.values() if f"{each.name}: {each.description.replace('`', '')}." not in text
    ] == []


def test_a_format_that_does_not_exist_is_told_those_that_do(run: Run, write: Write) -> None:
    ended = run("score", write("events.jsonl", EVENT), "--format", "chat")
    said = " ".join(ended.err.replace("│", " ").split())
    assert (ended.code, ended.out) == (2, "")
    assert "format 'chat': there is no such format; it must be one of traceweir, openai-chat," in said


def test_those_are_all_commands() -> None:
    group: Any = typer.main.get_command(app)
    assert sorted(group.commands) == sorted({command.split()[0] for command in COMMANDS})


def test_help_needs_neither_faust_nor_a_kafka_client() -> None:
    heavy = ["faust", "aiokafka", "confluent_kafka", "pydantic_settings", "numpy", "sentence_transformers"]
    code = f"import sys, traceweir.streams.cli.main; print([name for name in {heavy} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


# --- version


def test_version_is_that_of_the_installed_package(run: Run) -> None:
    assert run("--version") == Ended(0, f"traceweir {version('traceweir')}\n", "")


# --- score


def test_json_is_one_score_a_line_in_input_order_and_nothing_else(run: Run, write: Write) -> None:
    file = write("traces.jsonl", trace(2), trace(1))

    ended = run("score", file, "--embedder", "none", "--json")

    scores = [Score.model_validate_json(line) for line in ended.out.splitlines()]
    assert [(score.trace_id, score.metric, score.status) for score in scores] == [
        ("kp:trace:2", "trace_value", "PASSED"),
        ("kp:trace:2", "gate", "PASSED"),
        ("kp:trace:1", "trace_value", "PASSED"),
        ("kp:trace:1", "gate", "PASSED"),
    ]
    assert (ended.code, ended.err) == (0, "")


def test_a_missed_threshold_is_exit_code_1(run: Run, write: Write) -> None:
    file = write("traces.jsonl", trace(1, outcome={"confidence": 0.1}))
    assert run("score", file, "--embedder", "none", "--json").code == 1


def test_a_trace_that_is_not_meant_to_be_shared_misses_no_threshold(run: Run, write: Write) -> None:
    file = write("traces.jsonl", trace(1, metadata={"visibility": "private"}))

    ended = run("score", file, "--embedder", "none", "--json")

    assert [orjson.loads(line)["status"] for line in ended.out.splitlines()] == ["PASSED", "FAILED"]
    assert ended.code == 0


def test_an_unusable_record_is_named_on_stderr_and_is_exit_code_1(run: Run, write: Write) -> None:
    file = write("traces.jsonl", trace(1), trace(2, outcome={"confidence": 1.5}), trace(3))

    ended = run("score", file, "--embedder", "none", "--json")

    assert (ended.code, len(ended.out.splitlines())) == (1, 4)
    assert ended.err.startswith(f"{file}: document 2: invalid: outcome.confidence: ")


def test_a_transcript_that_cannot_be_read_is_named_once(run: Run, write: Write) -> None:
    chat = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}
    file = write("chats.jsonl", chat, {"messages": []})

    ended = run("score", file, "--format", "openai-chat", "--embedder", "none", "--json")

    assert (ended.code, len(ended.out.splitlines())) == (1, 2)
    assert ended.err.count(f"{file}: document 2: messages is a list of 0") == 1


def test_rows_of_a_table_are_scored_under_short_names_and_bad_ones_named(run: Run, write: Write) -> None:
    config = write("config.json", {"criteria": {"latency": {}, "input_token_count": {}}})
    file = write("rows.csv", b"request_id,request,response,execution_time_ms", b"r1,q,a,250000", b"r2,q,,")

    ended = run("score", file, "--embedder", "none", "--config", config)

    shown = " ".join(ended.out.split())
    assert "r1 latency_seconds 250 passed 250 s" in shown
    assert "r1 input_token_count none missing_input: no model call reports its input tokens" in shown
    assert ended.err == f"{file}: row 2, columns 'response' and 'trace': Missing required field(s): response or trace\n"
    assert ended.code == 1


def test_the_mean_of_each_metric_over_all_sessions_comes_last(run: Run, write: Write) -> None:
    config = write("config.json", {"criteria": {"latency": {}, "input_token_count": {}, "completeness": 0.5}})
    rows = [b"q,alpha,1000", b"alpha beta gamma,,3000", b"alpha,alpha,"]
    file = write(
        "rows.csv", b"request,response,execution_time_ms", rows[0], rows[1].replace(b",,", b",alpha,"), rows[2]
    )

    shown = " ".join(run("score", file, "--embedder", "none", "--config", config).out.split())

    _, _, sums = shown.partition("all sessions ")
    assert sums.startswith(
        "latency_seconds 2.000 mean of 2 of 3 sessions input_token_count none of 3 sessions completeness 0.444 "
    )
    assert "mean of 3 of 3 sessions, 2 failed 3 documents" in sums
    assert "all sessions" not in run("score", write("one.csv", b"request,response", b"q,a"), "--embedder", "none").out


@pytest.mark.parametrize(
    ("milliseconds", "sessions", "mean"),
    [
        (1_234_567_000, 2, "1,234,567 mean of 2 of 2 sessions"),
        pytest.param(1.7e308, 1_100, "1.7e+305 mean of 1100 of 1100 sessions", marks=pytest.mark.slow),
    ],
)
def test_the_mean_of_large_values_even_if_no_float_can_hold_their_sum_is_printed_short(
    milliseconds: float, sessions: int, mean: str, run: Run, write: Write
) -> None:
    config = write("config.json", {"criteria": {"latency": {}}})
    row = {"request": "q", "response": "a", "execution_time_ms": milliseconds}
    file = write("rows.jsonl", *[row] * sessions)

    ended = run("score", file, "--embedder", "none", "--config", config)

    assert f"latency_seconds {mean}" in " ".join(ended.out.partition("all sessions")[2].split())


def test_a_table_that_cannot_be_read_ends_it_with_two(run: Run, write: Write) -> None:
    ended = run("score", write("rows.parquet", b"no Parquet"), "--embedder", "none")
    assert (ended.code, "cannot be read as Parquet" in ended.err) == (2, True)


def test_upstreams_preset_gives_upstreams_weights(run: Run, write: Write) -> None:
    config = write("config.json", {"trace_value": {"preset": "knowledgepulse"}})
    file = write("traces.jsonl", trace(1, metadata={"task_domain": "finance"}))

    ended = run("score", file, "--embedder", "none", "--config", config, "--json")

    weights = orjson.loads(ended.out.splitlines()[0])["details"]["weights"]
    default = run("score", file, "--embedder", "none", "--json")
    assert weights != orjson.loads(default.out.splitlines()[0])["details"]["weights"]


def test_standard_input_is_read_for_a_dash(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(orjson.dumps(trace(1)))))
    ended = run("score", "-", "--embedder", "none", "--json")
    assert (ended.code, len(ended.out.splitlines())) == (0, 2)


def test_the_table_shows_value_status_and_reason(run: Run, write: Write) -> None:
    ended = run("score", write("traces.jsonl", trace(1, outcome={"confidence": 0.1})), "--embedder", "none")

    assert "trace_value" in ended.out
    assert "≥ 0.75 failed complexity" in ended.out
    assert "rejected: below_threshold" in ended.out
    assert "1 documents, 1 sessions" in ended.out


@pytest.mark.parametrize("hostile", ["[red]x[/nope]", "a\x1b[31mb", "right\u202eleft"])
def test_hostile_text_neither_colours_nor_breaks_the_table(hostile: str, run: Run, write: Write) -> None:
    event = {**orjson.loads(EVENT), "session_id": hostile}
    config = write("config.json", {"criteria": {"response_match_score": 0.5}})

    ended = run("score", write("events.jsonl", event), "--embedder", "none", "--config", config)

    assert ended.code == 0
    assert hostile.encode("unicode_escape").decode() in ended.out
    assert not {"\x1b", "\u202e"} & set(ended.out)


@pytest.mark.slow
@pytest.mark.parametrize("traces", [1, 300])  # what fits a buffer meets the closed pipe only at the end
def test_a_reader_who_has_enough_ends_it_quietly(traces: int, write: Write) -> None:
    file = write("traces.jsonl", *(trace(number) for number in range(traces)))
    command = [sys.executable, "-m", "traceweir.streams.cli.main", "score", file, "--embedder", "none", "--json"]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


# --- what cannot be used: exit code 2, every problem in one message


@pytest.mark.parametrize("command", ["worker", "score"])
def test_every_problem_of_a_config_is_said_at_once_before_anything_starts(command: str, run: Run, write: Write) -> None:
    config = write("config.json", WRONG_CONFIG)
    file = [write("events.jsonl", EVENT)] if command == "score" else []

    ended = run(command, *file, "--config", config)

    assert (ended.code, ended.out) == (2, "")
    heading, *problems = ended.err.splitlines()
    assert heading == "the evaluation config cannot be used:"
    assert [problem.split(":")[0] for problem in problems] == [
        "  - criteria.no_such_metric",
        "  - criteria.response_match_score",
        "  - trace_value.weight",
    ]
    assert "did you mean 'weights'?" in problems[2]


@pytest.mark.parametrize("command", ["worker", "score -", "emit -", "topics check", "topics create", "broker"])
def test_every_problem_of_the_environment_is_said_at_once(
    command: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_PARTITIONS", "0")
    monkeypatch.setenv("TRACEWEIR_IDLE_GAP_S", "-1")

    ended = run(*command.split())

    assert (ended.code, ended.out) == (2, "")
    assert [line.split(":")[0] for line in ended.err.splitlines()] == ["TRACEWEIR_PARTITIONS", "TRACEWEIR_IDLE_GAP_S"]


@pytest.mark.parametrize("command", ["worker", "topics create", "topics check"])
def test_a_stage_that_does_not_exist_is_refused(command: str, run: Run) -> None:
    ended = run(*command.split(), "--stages", "assemble,judge")
    assert ended.code == 2
    assert "'judge' is no stage; choose from assemble, score, gate" in ended.err


@pytest.mark.parametrize("arguments", [["score", "nowhere.jsonl"], ["score", "-", "--config", "nowhere.json"]])
def test_a_file_that_is_not_there_is_named(arguments: list[str], run: Run) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "nowhere.json" in ended.err
    assert "No such file or directory" in ended.err


@pytest.mark.parametrize("arguments", [["score"], ["score", "-", "--format", "csv"], ["nonsense"], ["worker", "--no"]])
def test_bad_usage_is_exit_code_2(arguments: list[str], run: Run) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Usage: " in ended.err


def test_an_embedder_that_cannot_be_had_is_exit_code_1(run: Run, write: Write) -> None:
    ended = run("score", write("events.jsonl", EVENT), "--embedder", "./no-such-model")
    assert (ended.code, ended.out) == (1, "")
    assert "embedder './no-such-model'" in ended.err


# --- Kafka that is not as needed: exit code 1


@pytest.mark.parametrize("command", ["worker", "emit {file}", "topics check", "topics create"])
def test_without_a_broker_the_message_says_what_to_do(
    command: str, run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceweir.streams.kafka.topic_admin.REQUEST_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", f"127.0.0.1:{mute.getsockname()[1]}")
        ended = run(*command.format(file=write("events.jsonl", EVENT)).split())

    assert (ended.code, ended.out) == (1, "")
    (message,) = ended.err.splitlines()
    assert message.startswith("no Kafka broker answered at 127.0.0.1:")
    assert "`docker compose up`" in message


def test_a_missing_topic_is_said_with_what_makes_it_and_then_made(
    run: Run, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)

    before = run("topics", "check")
    made = run("topics", "create", "--json")
    after = run("topics", "check")

    assert (before.code, before.out) == (1, "")
    assert "topic 'traceweir.traces' does not exist: run `traceweir topics create`" in before.err.splitlines()
    assert (made.code, made.err) == (0, "")
    assert orjson.loads(made.out).keys() == {"created", "existing", "wrong"}
    assert "traceweir.traces" in orjson.loads(made.out)["created"]
    assert (after.code, after.out, after.err) == (0, "all 10 topics are as they should be\n", "")


@pytest.mark.parametrize("command", ["worker", "topics check", "topics create"])
def test_a_wrong_partition_count_is_said_for_every_topic(
    command: str, run: Run, embedded_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", embedded_broker.bootstrap_servers)
    run("topics", "create")
    monkeypatch.setenv("TRACEWEIR_PARTITIONS", "8")

    ended = run(*command.split())

    assert ended.code == 1
    assert len(ended.err.splitlines()) == 10
    assert all(
        "has 4 partitions, expected 8" in line and "TRACEWEIR_PARTITIONS=4" in line for line in ended.err.splitlines()
    )


# --- the embedded broker


@pytest.mark.slow
def test_the_broker_prints_how_to_reach_it_and_says_what_it_is_not(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "traceweir.streams.cli.main", "broker"]
    with (tmp_path / "err").open("wb") as err, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err) as process:
        try:
            assert process.stdout is not None
            name, _, servers = process.stdout.readline().decode().strip().partition("=")
            topics = AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=10).topics
        finally:
            process.send_signal(signal.SIGINT)
        rest = process.stdout.read()

    assert name == "export TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
    assert {"traceweir.traces", "traceweir.results"} <= topics.keys()
    assert (process.returncode, rest) == (130, b"")
    assert "no Kafka" in (tmp_path / "err").read_text()
    assert "Traceback" not in (tmp_path / "err").read_text()
