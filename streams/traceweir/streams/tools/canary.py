"""Sends a known session and waits for its decision: the whole way of a record, measured from outside."""

from __future__ import annotations

import asyncio
import logging
import secrets
from dataclasses import dataclass
from time import monotonic
from typing import Any

import orjson

from traceweir.schemas.score import GATE
from traceweir.streams.base.canary_app import CANARY_APP
from traceweir.streams.base.clock import utc_now
from traceweir.streams.base.errors import WorkerError
from traceweir.streams.base.settings import Settings
from traceweir.streams.intake.formats.base import DocumentRecords
from traceweir.streams.intake.formats.documents import Document
from traceweir.streams.intake.formats.traceweir_json import wire_record
from traceweir.streams.tools.emit import EmitError, emit
from traceweir.streams.tools.results.reader import Results, ResultsError, ScoreFilter
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError

log = logging.getLogger(__name__)

_ANSWER = {"role": "model", "parts": [{"text": "The canary is alive."}]}


class CanaryError(WorkerError):
    """A session was not scored in time; the message says what is missing, and where to look."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A session that was scored and decided."""

    session_id: str
    seconds: float
    """Seconds from sending its first record to reading its decision."""
    scores: int
    """Number of its scores, the decision included."""


async def beat(settings: Settings, timeout_s: float) -> Beat:
    """Sends a session of one invocation and one trace, and waits for the gate's decision on it.

    The trace is private, so that the gate never publishes it. The texts are always the same: a judge's verdict on them
    comes from the stored ones, and costs nothing.

    Args:
        settings: Where Kafka is.
        timeout_s: Seconds from sending to the decision.

    Raises:
        CanaryError: the session could not be sent to Kafka, or there was no decision in time.
    """
    session_id = f"{CANARY_APP}-{secrets.token_hex(8)}"
    found: list[str] = []
    sent = False
    began = monotonic()
    try:
        async with asyncio.timeout(timeout_s), Results(settings, ScoreFilter(session_id=session_id)) as results:
            report = await emit(settings, _records(session_id), progress=lambda done: None)
            if report.problems:
                raise CanaryError(f"the session was not sent: {report.problems[0]}")
            sent = True
            async for each in results.following(log.warning):
                found.append(each.score.metric)
                if each.score.metric == GATE:
                    break
    except TimeoutError:
        if not sent:
            raise CanaryError(
                f"no session could be sent to Kafka at {settings.kafka_bootstrap_servers} within {timeout_s:g} s; see "
                "`traceweir doctor`"
            ) from None
        seen = f"{len(found)} scores came, and no decision" if found else "no score came"
        raise CanaryError(
            f"{seen} for the session {session_id} within {timeout_s:g} s; see `traceweir results --session {session_id}`, "
            "`traceweir dlq list --since 10m`, and /readyz and /metrics of the workers"
        ) from None
    except (EmitError, KafkaUnreachableError, ResultsError) as error:
        raise CanaryError(str(error)) from error
    return Beat(session_id, monotonic() - began, len(found))


def _records(session_id: str) -> list[DocumentRecords]:
    return [
        DocumentRecords(Document(number, raw), [wire_record(raw)])
        for number, raw in enumerate(map(orjson.dumps, documents(session_id)), start=1)
    ]


def documents(session_id: str) -> list[dict[str, Any]]:
    """Returns the records of a canary's session, as an agent would send them."""
    now = f"{utc_now():%Y-%m-%dT%H:%M:%S.%fZ}"
    shared: dict[str, Any] = {
        "session_id": session_id,
        "app_name": CANARY_APP,
        "agent_name": CANARY_APP,
        "invocation_id": f"{session_id}-1",
        "occurred_at": now,
    }
    question = {"role": "user", "parts": [{"text": "Is the canary alive?"}]}
    return [
        {**shared, "type": "invocation.started", "event_id": f"{session_id}-1", "user_content": question},
        {**shared, "type": "invocation.completed", "event_id": f"{session_id}-2", "final_response": _ANSWER},
        {
            "@context": "https://openknowledgepulse.org/schema/v1",
            "@type": "ReasoningTrace",
            "id": f"kp:trace:{session_id}",
            "metadata": {
                "created_at": now,
                "agent_id": CANARY_APP,
                "framework": CANARY_APP,
                "task_domain": CANARY_APP,
                "success": True,
                "quality_score": 1.0,
                "visibility": "private",
                "privacy_level": "private",
                "session_id": session_id,
                "invocation_id": f"{session_id}-1",
            },
            "task": {"objective": "Is the canary alive?"},
            "steps": [{"step_id": 0, "type": "thought", "content": "The canary answers."}],
            "outcome": {"result_summary": "The canary is alive.", "confidence": 1.0},
        },
        {**shared, "type": "session.ended", "event_id": f"{session_id}-3"},
    ]
