"""Runs the joining of sessions with Kafka Streams, exactly once, to compare it with the assemble stage.

`KAFKA_STREAMS_HOME` names a folder with the jars of Kafka Streams and of what they need: an unpacked Apache Kafka, or
the `libs` of one. The program is `Assemble.java`; `java` of a JDK from version 17 compiles it at each start.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from traceweir.streams.base.topics import Topics

HOME = "KAFKA_STREAMS_HOME"
LONGER = 4
"""Factor by which the load is larger than that of the other programs, so that the JVM has compiled before it is measured."""

PROGRAM = Path(__file__).with_name("Assemble.java")


class KafkaStreamsError(ValueError):
    """`KAFKA_STREAMS_HOME` is set, and Kafka Streams cannot be run."""


def classpath(environment: Mapping[str, str]) -> str | None:
    """Returns the class path of Kafka Streams; None without the variable.

    Raises:
        KafkaStreamsError: The folder lacks the jars, or there is no JDK.
    """
    home = environment.get(HOME)
    if not home:
        return None
    folder = next((each for each in (Path(home), Path(home, "libs")) if list(each.glob("kafka-streams-*.jar"))), None)
    if folder is None:
        raise KafkaStreamsError(
            f"{HOME}={home} has no kafka-streams-*.jar, and neither has its folder libs; "
            "name an unpacked Apache Kafka with all its jars, or unset it"
        )
    if shutil.which("javac") is None:  # `java` compiles the program, and only a JDK can
        raise KafkaStreamsError(f"{HOME} is set, and there is no javac; install a JDK from version 17, or unset it")
    # The test broker's folder may have jars that the other folder lacks.
    others = [str(Path(broker, "libs", "*"))] if (broker := environment.get("KAFKA_HOME")) else []
    return os.pathsep.join([str(folder / "*"), *others])


def command(
    environment: Mapping[str, str], servers: str, topics: Topics, folder: str, records: int, sessions: int
) -> list[str]:
    """Returns the command that joins the load of the topics, and prints `rate` and `cpu_us` as JSON.

    Raises:
        KafkaStreamsError: The environment does not name Kafka Streams.
    """
    jars = classpath(environment)
    if jars is None:
        raise KafkaStreamsError(f"{HOME} is not set; it names an unpacked Apache Kafka with the jars of Kafka Streams")
    names = [topics.traces, topics.invocations, topics.sessions]
    return ["java", "-cp", jars, str(PROGRAM), servers, *names, folder, str(records), str(sessions)]
