"""A log for programs is one JSON object a line, whatever a message or an error contains."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

SCRIPT = """
import logging
from aiokafka import TopicPartition
from aiokafka.errors import NotEnoughReplicasError
from traceweir.streams.process_log import LAST_WORD, LogOptions, log_to_stderr

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
from traceweir.streams.process_log import LogOptions, log_to_stderr
log_to_stderr(LogOptions())
log_to_stderr(LogOptions())
logging.getLogger("traceweir").info("once")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "once\n"
    assert ended.stderr.count("once") == 1
