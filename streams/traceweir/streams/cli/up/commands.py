"""`traceweir up`: runs a broker, a worker, the OTLP endpoint and the dashboard until Ctrl-C, each in a process."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import orjson

from traceweir.schemas.text import printable
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.errors import InvalidSettingsError, NotReadyError, WorkerError
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import load_settings
from traceweir.streams.base.topics import ALL_STAGES
from traceweir.streams.cli.demo.agents import write_history
from traceweir.streams.cli.demo.scripted_judge import scripted_judge
from traceweir.streams.cli.demo.story import config as story_config
from traceweir.streams.cli.demo.story import headlines
from traceweir.streams.cli.parts import CommandProcess, Line, stop, waiting
from traceweir.streams.cli.references import push_files
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.up.ports import replaced_ports
from traceweir.streams.cli.up_broker import SERVERS, broker_left
from traceweir.streams.lab.evals.configs import criteria_for
from traceweir.streams.lab.evals.files import chosen_files, read_eval_file
from traceweir.streams.scoring.judges.litellm_setup import JUDGE_PACKAGES
from traceweir.streams.worker.kafka.embedded_broker import PARTITIONS, EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_topics

READY_WITHIN_S = 300.0
_LOOK_EVERY_S = 0.2
_QUICK_SESSIONS = {"IDLE_GAP_S": "20", "CLOSE_LINGER_S": "2"}
"""Settings of a trial: a session of an agent that does not end it is scored after 20 seconds of silence."""
EMBEDDED = """\
No Kafka is configured, so an embedded broker runs. It keeps its records in memory, about 5 MB per partition, and this
command forgets everything when it ends. For records that last, set TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS.
"""


class Addresses(NamedTuple):
    """Where the parts answer."""

    dashboard: str
    """The URL of the page."""
    otlp: str
    """The base URL of OTLP/HTTP."""
    otlp_grpc: str | None
    """The URL of OTLP/gRPC; None if the endpoint serves no gRPC."""
    kafka: str
    """The brokers, `host:port`, separated by commas."""


class PartEndedError(WorkerError):
    """A part has ended by itself. The text says what its log said last."""


def run_up(*, demo: bool, config: Path | None, eval_set: str | None = None, as_json: bool) -> None:
    """Runs all parts until SIGTERM or Ctrl-C; prints on stdout where they answer.

    Args:
        demo: Whether simulated agents send records too.
        config: File of the evaluation config; None: the criteria of the eval set, else the default criteria.
        eval_set: Eval set with whose cases sessions are compared; None: none.
        as_json: Whether to print an object of JSON instead of lines for a person.

    Raises:
        ConfigError: the config beside the eval set cannot be used.
        InputError: the eval set cannot be used.
        InvalidSettingsError: the environment cannot be used, or the extra `[dashboard]` is not installed.
        KafkaUnreachableError: no broker answers at the configured address.
        NotReadyError: a topic is wrong, or another program has a port that the environment names.
        PartEndedError: a part has ended by itself.
    """
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    _require_dashboard()
    # The worker's pages of health get any free port unless the environment names one: nobody needs them here.
    os.environ.setdefault(f"{ENV_PREFIX}WEB_PORT", "0")
    settings = load_settings()
    chosen_settings = settings.model_fields_set
    os.environ |= replaced_ports(settings, chosen_settings)
    # On a cluster of one's own, agents send no records of the past, and push no config.
    tells_story = demo and SERVERS not in os.environ
    with (
        _story(config, eval_set) if tells_story else nullcontext() as story,
        _criteria_file(story.config if story else config, eval_set) as chosen_config,
        _environment("error" if demo else "warning", story.variables if story else {}) as environment,
    ):
        if eval_set is not None:
            push_files(load_settings(), [eval_set])
        if story:
            write_history(load_settings(), story.start)
        lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
        chosen = [] if chosen_config is None else ["--config", str(chosen_config)]
        known = {} if chosen_config is None else {f"{ENV_PREFIX}DASHBOARD_CONFIG": str(chosen_config)}
        parts = [
            CommandProcess("worker", ["worker", "--stages", ",".join(ALL_STAGES), *chosen], environment, lines),
            CommandProcess("otlp", ["otlp", "--json"], environment, lines),
            CommandProcess("dashboard", ["dashboard", "--json"], known | environment, lines),
            CommandProcess("alerts", ["alerts", "run"], environment, lines),
        ]
        try:
            found = _addresses(parts, lines, stopped, chosen_settings)
            if found is None:
                return
            if demo:
                agents = ["--story", str(story.pushed)] if story else ["--agents-only", "--keep"]
                parts.append(CommandProcess("agents", ["demo", *agents], environment, lines))
            _tell(found, story.headlines if story else (), demo=demo, as_json=as_json)
            while not stopped.wait(_LOOK_EVERY_S):
                _show(lines)
                _check(parts, lines)
        finally:
            stop(parts)


class _Story(NamedTuple):
    """What the parts need for the story of the demo."""

    config: Path | None
    """The config of the worker; None: that of the eval set."""
    pushed: Path
    """The config that the agents push."""
    variables: Mapping[str, str]
    """Settings of the parts."""
    start: datetime
    """When its history ends."""
    headlines: Sequence[str]
    """What happens, a line each."""


@contextmanager
def _story(config: Path | None, eval_set: str | None) -> Iterator[_Story]:
    """Runs the scripted judge of the demo, if a judge can be asked here, and yields what the parts need."""
    start = utc_now()
    judged = config is None and eval_set is None and all(map(find_spec, JUDGE_PACKAGES))
    with TemporaryDirectory(prefix="traceweir-story-") as folder, ExitStack() as running:
        variables = {f"{ENV_PREFIX}EMBEDDER": "hashing"}
        own = Path(folder) / "eval.json"
        pushed = Path(folder) / "pushed.json"
        own.write_bytes(orjson.dumps(story_config(judged=judged)))
        pushed.write_bytes(orjson.dumps(story_config(judged=judged, max_tool_calls=2)))
        if judged:
            url = running.enter_context(scripted_judge())
            variables |= {f"{ENV_PREFIX}JUDGE_API_BASE": url, f"{ENV_PREFIX}JUDGE_API_KEY": "not-needed"}
        elif config is None and eval_set is None:
            complain("No judge is shown: `pip install '.[judge]'` installs what asks one.")
        yield _Story(config if config or eval_set else own, pushed, variables, start, headlines(start, judged=judged))


@contextmanager
def _criteria_file(config: Path | None, eval_set: str | None) -> Iterator[Path | None]:
    """Yields the file of the config: the given one, or one with the criteria of the eval set, as `traceweir eval` finds them.

    Raises:
        InputError: the eval set cannot be used; nothing has started yet.
    """
    files = [] if eval_set is None else chosen_files([eval_set])
    for each in files:
        read_eval_file(each)
    if config is not None or not files:
        yield config
        return
    criteria = criteria_for(files[0].path, None, alone=len(files) == 1)
    complain(f"{eval_set}: {criteria.origin}")
    with TemporaryDirectory(prefix="traceweir-criteria-") as folder:
        file = Path(folder) / "criteria.json"
        file.write_bytes(orjson.dumps(criteria.plan.document))
        yield file


def _require_dashboard() -> None:
    missing = [name for name in ("duckdb", "fastapi", "jinja2", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InvalidSettingsError(
            f"the dashboard needs the package {missing[0]}: run `pip install '.[dashboard]'` in a clone of Traceweir"
        )


@contextmanager
def _environment(level: str, variables: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yields the environment of the parts, and runs the embedded broker meanwhile if no Kafka is configured.

    `level` is the log level if the environment has none: simulated agents send bad records on purpose, which the page
    shows. `variables` hold where the environment has none.
    """
    calm = {f"{ENV_PREFIX}LOG_LEVEL": level} | dict(variables) | dict(os.environ)
    if SERVERS in os.environ:
        _create_topics()
        yield calm
        return
    complain(EMBEDDED.rstrip())
    with TemporaryDirectory(prefix="traceweir-up-", ignore_cleanup_errors=True) as folder, EmbeddedBroker() as broker:
        # The offsets of the worker and of the store are those of this broker, which does not outlive this command.
        own = {
            SERVERS: broker.bootstrap_servers,
            f"{ENV_PREFIX}KAFKA_SECURITY_PROTOCOL": "PLAINTEXT",
            f"{ENV_PREFIX}PARTITIONS": str(PARTITIONS),
            f"{ENV_PREFIX}STATE_DIR": str(Path(folder) / "state"),
            f"{ENV_PREFIX}STORE": str(Path(folder) / "results.duckdb"),
        }
        os.environ |= own
        _create_topics()
        with broker_left(load_settings()):
            yield {f"{ENV_PREFIX}{name}": value for name, value in _QUICK_SESSIONS.items()} | calm | own


def _create_topics() -> None:
    topics = create_topics(load_settings(), ALL_STAGES)
    if topics.wrong:
        raise NotReadyError("\n".join(topics.wrong))


def _addresses(
    parts: list[CommandProcess], lines: queue.SimpleQueue[Line], stopped: threading.Event, chosen: Collection[str]
) -> Addresses | None:
    """Returns where the dashboard, the endpoint and the broker answer; None after a stop signal.

    Between the check of the ports and the start of a part, another program can take a default port. The part is then
    started again, with a free port; it takes the place of the former one in `parts`. `chosen` has the names of the
    settings whose ports are not replaced.

    Raises:
        PartEndedError: a part has ended, or says nothing.
    """
    found: dict[str, dict[str, Any]] = {}
    until = time.monotonic() + READY_WITHIN_S
    while len(found) < 2:
        if stopped.wait(0.05):
            return None
        for number, part in enumerate(parts):
            if part.name not in found and part.process.poll() is not None:
                ports = replaced_ports(load_settings(), chosen, part.name)
                os.environ |= ports
                if ports:
                    parts[number] = CommandProcess(part.name, part.command, {**part.environment, **ports}, lines)
        _check(parts, lines)
        if time.monotonic() > until:
            missing = " and ".join(sorted({"dashboard", "otlp"} - found.keys()))
            raise PartEndedError(
                f"{missing} did not start within {READY_WITHIN_S:g} s, so everything ends: its log is above if it has one; "
                "the machine may be too busy, so end other programs and try again"
            )
        for line in waiting(lines):
            if line.is_output and line.part in ("dashboard", "otlp"):
                found[line.part] = orjson.loads(line.text)
            else:
                _write(line)
    otlp = found["otlp"]
    return Addresses(found["dashboard"]["address"], otlp["http"], otlp["grpc"], load_settings().kafka_bootstrap_servers)


def _tell(found: Addresses, story: Sequence[str], *, demo: bool, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(orjson.dumps(found._asdict()).decode() + "\n")
    else:
        agents = "Simulated agents send records now." if demo else "Simulated agents: `traceweir up --demo`."
        shown = "" if not story else f" What the page shows:\n{_listed(story)}\n"
        over_grpc = "" if found.otlp_grpc is None else f"  # or over gRPC: {found.otlp_grpc}\n"
        sys.stdout.write(
            f"The page: {found.dashboard}{'/?span=1h' if story else ''}\n\n"
            "An agent that is instrumented with OpenTelemetry sends its spans here:\n"
            f"  export OTEL_EXPORTER_OTLP_ENDPOINT={found.otlp}\n"
            "  export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n"
            f"{over_grpc}\n"
            "Other commands and programs reach Kafka here:\n"
            f"  export {SERVERS}={found.kafka}\n\n"
            f"{agents}{shown or ' '}Ctrl-C ends everything.\n"
        )
    sys.stdout.flush()


def _listed(lines: Sequence[str]) -> str:
    return "\n".join(f"  - {line}" for line in lines)


def _check(parts: Sequence[CommandProcess], lines: queue.SimpleQueue[Line]) -> None:
    for part in parts:
        if part.process.poll() is not None:
            # The thread that reads its log may not have seen the last line.
            time.sleep(_LOOK_EVERY_S)
            _show(lines)
            raise PartEndedError(
                f"{part.name} has ended with exit code {part.process.returncode}, so everything ends; its log has the "
                "reason, above"
            )


def _show(lines: queue.SimpleQueue[Line]) -> None:
    for line in waiting(lines):
        if not line.is_output:
            _write(line)


def _write(line: Line) -> None:
    sys.stderr.write(f"{line.part}: {printable(line.text, 2_000)}\n")
    sys.stderr.flush()
