"""`traceweir results` on the embedded broker shows, follows and exports the scores that count."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.support.command_line import Ended, Run
from tests.support.results import make_score, put_scores
from tests.support.scoring import NOW

from traceweir.schemas.score import Score
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.results.reader import Results, ScoreFilter
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher"), pytest.mark.xdist_group("results")]

HOSTILE = "=cmd|x[red]\x1b[31m\u202e"

Put = Callable[..., None]
Show = Callable[..., Ended]


@pytest.fixture
def servers(embedded_broker: EmbeddedBroker) -> str:
    create_topics(Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers))
    return embedded_broker.bootstrap_servers


@pytest.fixture
def show(servers: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> Show:
    """Returns a function that runs `traceweir results`, on that broker."""
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    return lambda *arguments: run("results", *arguments)


def sessions(ended: Ended) -> list[str]:
    return [json.loads(line)["session_id"] for line in ended.out.splitlines()]


def test_scores_are_printed_by_time_with_the_threshold_that_a_failed_score_needs(servers: str, show: Show) -> None:
    put_scores(servers, [make_score("second", value=0.1)])
    put_scores(
        servers,
        [
            make_score("first", value=1.0),
            make_score("first", "latency", None, invocation_id="i1", level="invocation"),
            make_score("first", "gate", 0.0, threshold=1.0, trace_id="kp:trace:1", level="trace", segment=2),
        ],
        at=NOW - timedelta(hours=1),
    )

    ended = show()

    assert ended.out.splitlines() == [
        "2026-01-31 11:00:00  first  session  response_match_score  1.000  PASSED  words",
        "2026-01-31 11:00:00  first  i1  latency  -  NOT_EVALUATED  missing_input: words",
        "2026-01-31 11:00:00  first  kp:trace:1  gate  0.000  FAILED  words",
        "2026-01-31 12:00:00  second  session  response_match_score  0.100  FAILED (needs >= 0.75)  words",
    ]
    assert (ended.code, ended.err) == (0, "")
    latest = show("--limit", "1")
    assert latest.out == ended.out.splitlines(keepends=True)[-1]
    assert latest.err == "the latest 1 of 4 scores; --limit shows more\n"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--session", "a"], {"a low", "a gate", "a none"}),
        (["--failed"], {"a low", "b low"}),
        (["--failed", "--metric", "gate"], {"a gate"}),
        (["--not-evaluated", "--failed"], {"a low", "b low", "a none"}),
        (["--metric", "document_recall"], {"a none"}),
        (["--since", "2026-01-31T12:00Z"], {"a low", "a gate", "a none"}),
        (["--since", "2026-01-31T12:00Z", "--session", "b"], set()),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_a_filter_selects_scores(options: Sequence[str], expected: set[str], servers: str, show: Show) -> None:
    put_scores(servers, [make_score("b", rationale="b low")], at=NOW - timedelta(days=1))
    recall = "retrieval/ground_truth/document_recall"
    put_scores(
        servers,
        [
            make_score("a", rationale="a low"),
            make_score("a", "gate", 0.0, rationale="a gate"),
            make_score("a", recall, None, rationale="a none"),
        ],
    )
    ended = show("--json", *options)
    assert {json.loads(line)["rationale"] for line in ended.out.splitlines()} == expected
    assert ended.err == ("" if expected else "no scores match\n")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("agent_version=2", {"b", "c"}),
        ("agent_version=2 app_name=shop", {"b"}),
        ("agent_version=1 agent_version=2", {"a", "b", "c"}),
        ("labels.team=blue", {"c"}),
        ("environment=production", set()),
    ],
)
def test_scores_are_selected_by_dimensions_and_labels(where: str, expected: set[str], servers: str, show: Show) -> None:
    put_scores(
        servers,
        [
            make_score("none"),
            make_score("a", agent_version="1", app_name="shop"),
            make_score("b", agent_version="2", app_name="shop"),
            make_score("c", agent_version="2", labels={"team": "blue"}),
        ],
    )
    ended = show("--json", *(part for each in where.split() for part in ("--where", each)))
    assert {json.loads(line)["session_id"] for line in ended.out.splitlines()} == expected


@pytest.mark.parametrize("where", ["agent_version", "agent_version=", "session=a", "labels.=a", "=a"])
def test_a_wrong_dimension_is_refused_with_the_right_ones(where: str, show: Show) -> None:
    ended = show("--where", where)
    assert ended.code == 2
    assert "write NAME=VALUE, where NAME is app_name, agent_name" in " ".join(ended.err.replace("│", " ").split())


def test_only_the_highest_revision_and_attempt_of_a_result_counts(servers: str, show: Show) -> None:
    versions = [(0, 0), (1, 0), (1, 1), (0, 5)]  # the last as a replay writes it
    put_scores(servers, [make_score(revision=revision, attempt=attempt) for revision, attempt in versions])
    put_scores(servers, [make_score("other")])

    def shown(*options: str) -> list[tuple[int, int]]:
        documents = map(json.loads, show("--json", "--session", "s", *options).out.splitlines())
        return [(each["revision"], each["attempt"]) for each in documents]

    assert shown() == shown("--limit", "9") == [(1, 1)]
    assert shown("--all-revisions") == versions
    assert "  session  1.1  response" in show("--all-revisions").out


def test_json_is_the_record_of_the_topic_on_one_line(servers: str, show: Show) -> None:
    score = make_score("한국", rationale="\u2028\U000e0001\n", details={"huge": 10**30})
    spaced = json.dumps(json.loads(score.wire()), indent=1, ensure_ascii=False).encode()
    put_scores(servers, [score])
    put_scores(servers, [spaced])

    plain, indented = sorted(show("--json").out.splitlines(), key=len)

    assert Score.model_validate_json(plain) == Score.model_validate_json(indented) == score
    assert plain.isprintable()
    assert '"huge":1000000000000000000000000000000}' in plain
    assert "한국" in plain


def test_hostile_text_is_escaped_and_a_forged_record_is_counted(servers: str, show: Show) -> None:
    forged = [b"", b"\xff", b"{}", b"[" * 100_000, make_score().wire().replace(b'"level":"session"', b'"level":"?"')]
    put_scores(servers, [make_score(HOSTILE, rationale=HOSTILE), *forged])

    ended = show()

    assert ended.out.count(r"=cmd|x[red]\x1b[31m\u202e") == 2
    assert (ended.code, ended.out.count("\n")) == (0, 1)
    assert ended.err == "traceweir.results: 5 records omitted, because not a score\n"


def test_a_forged_record_hides_no_score(servers: str, show: Show) -> None:
    true = make_score("a")
    other_session = make_score("b", revision=9).model_copy(update={"result_id": true.result_id})
    no_score = true.wire().replace(b'"level":"session"', b'"level":"?"').replace(b'"revision":0', b'"revision":9')
    put_scores(servers, [true, other_session, no_score])

    assert [line.split("  ")[1] for line in show().out.splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    ("scores", "options", "said"),
    [
        ([], [], "traceweir.results has no scores: a worker writes scores when a session closes\n"),
        ([make_score()], ["--session", "lost"], "no scores match\n"),
        (
            [make_score(), make_score(metric="agent/latency_seconds")],
            ["--metric", "response_match"],
            (
                "no score has the metric 'response_match'; did you mean 'response_match_score'? "
                "Known: latency_seconds, response_match_score\n"
            ),
        ),
    ],
    ids=["empty", "session", "metric"],
)
def test_an_empty_answer_says_why(scores: list[Score], options: list[str], said: str, servers: str, show: Show) -> None:
    put_scores(servers, scores)
    assert show(*options) == (0, "", said)


def exported(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_scores_are_exported_as_typed_parquet_and_as_csv(servers: str, show: Show, tmp_path: Path) -> None:
    scores = [
        make_score("a", details={"n": 1}),
        make_score("b", value=None),
        make_score(HOSTILE),
        make_score("b", revision=2),
    ]
    put_scores(servers, [*scores, make_score("a", "big", segment=2**64), b"forged"])
    for name in ("scores.parquet", "scores.csv"):
        ended = show("export", str(tmp_path / name))
        assert (ended.code, ended.out) == (0, "")
        assert ended.err.splitlines() == [
            "traceweir.results: 2 records omitted, because not a score",
            f"{tmp_path / name}: 3 rows",
        ]

    typed = {row["session_id"]: row for row in exported(tmp_path / "scores.parquet")}
    assert typed.keys() == {"a", "b", HOSTILE}
    assert (typed["a"]["evaluated_at"], typed["a"]["written_at"], typed["a"]["value"]) == (NOW, NOW, 0.5)
    assert (typed["a"]["details"], typed["a"]["cost_cached"], typed["b"]["revision"]) == ('{"n":1}', False, 2)
    text = {row["session_id"]: row for row in exported(tmp_path / "scores.csv")}
    assert text.keys() == {"a", "b", f"'{HOSTILE}"}
    assert (text["a"]["evaluated_at"], text["a"]["cost_cached"]) == ("2026-01-31T12:00:00Z", "false")
    assert list(text["a"]) == list(typed["a"])


def test_an_export_that_fails_leaves_the_old_file(servers: str, show: Show, tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("old")
    put_scores(servers, [make_score()])

    assert show("export", str(file), "--since", "5y").code == 2
    assert show("export", str(tmp_path / "scores.xlsx")).code == 2
    assert show("--failed", "export", str(file)).code == 2
    assert show("export", str(tmp_path / "none" / "scores.csv")).code == 2
    assert (file.read_text(), list(tmp_path.iterdir())) == ("old", [file])


async def test_new_scores_are_followed_from_the_end_of_what_was_read(servers: str) -> None:
    put_scores(servers, [make_score("old"), make_score("old", "latency")])
    settings, wanted = Settings(kafka_bootstrap_servers=servers), ScoreFilter(metrics=frozenset({"latency"}))
    async with Results(settings, wanted) as results:
        put_scores(servers, [make_score("new"), make_score("new", "latency")])
        assert [found.score.session_id async for found in results.matching()] == ["old"]
        following = results.following(pytest.fail)
        assert (await anext(following)).score.session_id == "new"
        put_scores(servers, [make_score("newest", "latency")])
        assert (await anext(following)).score.session_id == "newest"
        await following.aclose()  # type: ignore[attr-defined]


@pytest.mark.slow
def test_ctrl_c_ends_following_with_exit_code_130(servers: str) -> None:
    put_scores(servers, [make_score("old")])
    process = subprocess.Popen(
        [sys.executable, "-m", "traceweir.streams.cli.main", "results", "--follow", "--json"],
        env=os.environ | {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": servers},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["session_id"] == "old"
        put_scores(servers, [make_score("new")])
        assert json.loads(process.stdout.readline())["session_id"] == "new"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "")
