"""A log for programs is one JSON object a line, whatever a message or an error contains."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import aiokafka
import faust

SCRIPT = """
import logging
from aiokafka import TopicPartition
from aiokafka.errors import NotEnoughReplicasError
from traceweir.streams.base.process_log import LAST_WORD, LogOptions, log_to_stderr

log_to_stderr(LogOptions("info", "json"))
log = logging.getLogger("traceweir.streams.worker")
log.info("first\\n%s", "\\x1b[31mred\\u2028line", extra={LAST_WORD: True})
try:
    raise ValueError("a\\nb")
except ValueError:
    log.exception("the process ends")
logging.getLogger("aiokafka").warning("no broker")
retrying = "Got error produce response on topic-partition %s, retrying. Error: %s"
logging.getLogger("aiokafka.producer.sender").warning(retrying, TopicPartition("acme.results", 0), NotEnoughReplicasError)
log.debug("below the level")
"""


def test_each_line_is_a_json_object_with_its_error() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TZ": "Asia/Tokyo"},
    )

    assert ended.stderr.replace("\n", "").isascii()
    first, error, library, _ = map(json.loads, ended.stderr.splitlines())
    assert first["message"] == "first\n\x1b[31mred\u2028line"
    assert {name: first[name] for name in ("level", "logger")} == {
        "level": "INFO",
        "logger": "traceweir.streams.worker",
    }
    assert set(first) == {"timestamp", "level", "logger", "message", "process"}
    assert first["timestamp"].endswith("+00:00")
    assert error["message"] == "the process ends"
    assert error["exception"].startswith("Traceback")
    assert "ValueError: a\nb" in error["exception"]
    assert (library["logger"], library["level"]) == ("aiokafka", logging.getLevelName(logging.WARNING))


def test_a_topic_without_enough_replicas_is_named_with_the_option() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    message = json.loads(ended.stderr.splitlines()[-1])["message"]
    assert "topic='acme.results', partition=0" in message
    assert "NotEnoughReplicasError" in message
    assert "Fewer replicas of this topic are in sync than its min.insync.replicas" in message


def test_a_later_call_replaces_the_handler_of_the_former_one_and_keeps_those_of_others() -> None:
    code = """
import logging, sys
logging.getLogger().addHandler(logging.StreamHandler(sys.stdout))
from traceweir.streams.base.process_log import LogOptions, log_to_stderr
log_to_stderr(LogOptions())
log_to_stderr(LogOptions())
logging.getLogger("traceweir").info("once")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "once\n"
    assert ended.stderr.count("once") == 1


FIRST_COORDINATOR = "Group Coordinator Request failed: %s"
REBALANCES = ("Heartbeat failed for group %s because it is rebalancing", "Missing sensor state for rebalance #%s")
AT_SECONDS = """
import logging, sys
from traceweir.streams.base.process_log import LogOptions, log_to_stderr
log_to_stderr(LogOptions())
for second in map(int, sys.argv[2:]):
    logging.getLogger("aiokafka").handle(logging.makeLogRecord(
        {"name": "aiokafka", "levelno": logging.ERROR, "levelname": "ERROR", "msg": sys.argv[1], "args": (f"<{second}>",),
         "created": 1_000_000.0 + second}))
"""


def shown(message: str, *seconds: int) -> list[int]:
    """Returns the seconds at which a message of a library is logged, of those at which it comes."""
    command = [sys.executable, "-c", AT_SECONDS, message, *map(str, seconds)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return [second for second in seconds if f"<{second}>" in ended.stderr]


def test_what_kafkas_client_says_of_every_rebalance_is_not_logged() -> None:
    assert [shown(message, 0, 40, 80) for message in REBALANCES] == [[], []]


def test_a_coordinator_that_is_missing_for_a_moment_is_not_logged() -> None:
    assert shown(FIRST_COORDINATOR, 0, 2, 9, 100, 101) == []


def test_a_coordinator_that_stays_away_is_logged() -> None:
    assert shown(FIRST_COORDINATOR, 0, 5, 10, 15, 45) == [10, 45]


def test_other_lines_of_kafkas_client_are_logged_at_once() -> None:
    assert shown("Unable to connect to %s", 0, 5, 31) == [0, 31]


def test_the_libraries_still_have_the_messages_that_are_left_out() -> None:
    coordinator = Path(aiokafka.__file__).with_name("consumer") / "group_coordinator.py"
    sources = coordinator.read_text() + Path(faust.__file__).parent.joinpath("app", "base.py").read_text()
    messages = [FIRST_COORDINATOR, "Marking the coordinator dead", *REBALANCES]
    assert [message for message in messages if message not in sources] == []
