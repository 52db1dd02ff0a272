"""What `KAFKA_STREAMS_HOME` has to name."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from benchmarks import kafka_streams

from traceweir.streams.base.topics import Topics


def test_without_the_variable_kafka_streams_is_not_measured() -> None:
    assert kafka_streams.classpath({}) is None


@pytest.mark.parametrize("folder", ["", "libs"])
def test_the_jars_of_an_unpacked_kafka_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    jars = tmp_path / folder
    jars.mkdir(exist_ok=True)
    (jars / "kafka-streams-4.3.1.jar").touch()
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    found = kafka_streams.classpath({"KAFKA_STREAMS_HOME": str(tmp_path), "KAFKA_HOME": "/opt/kafka"})
    assert found == os.pathsep.join([f"{jars}/*", "/opt/kafka/libs/*"])


def test_a_folder_without_the_jars_is_named(tmp_path: Path) -> None:
    (tmp_path / "kafka-clients-4.3.1.jar").touch()
    with pytest.raises(kafka_streams.KafkaStreamsError, match=f"KAFKA_STREAMS_HOME={tmp_path} has no kafka-streams"):
        kafka_streams.classpath({"KAFKA_STREAMS_HOME": str(tmp_path)})


def test_without_java_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kafka-streams-4.3.1.jar").touch()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(kafka_streams.KafkaStreamsError, match="no javac; install a JDK"):
        kafka_streams.classpath({"KAFKA_STREAMS_HOME": str(tmp_path)})


def test_without_the_variable_the_program_has_no_command() -> None:
    with pytest.raises(kafka_streams.KafkaStreamsError, match="KAFKA_STREAMS_HOME is not set"):
        kafka_streams.command({}, "127.0.0.1:9092", Topics.of(), "folder", 11, 1)


def test_the_program_compiles_with_kafka_streams(tmp_path: Path) -> None:
    jars = kafka_streams.classpath(os.environ)
    if jars is None:
        pytest.skip("needs Kafka Streams: KAFKA_STREAMS_HOME=... pytest tests/unit/benchmarks")
    compiled = subprocess.run(
        ["javac", "-cp", jars, "-d", str(tmp_path), str(kafka_streams.PROGRAM)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
