"""Reads what the verdicts on anchors say of the judges while an alert is raised."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

from aiokafka.errors import KafkaError

from traceweir.schemas.text import printable
from traceweir.streams.base.clock import utc_now
from traceweir.streams.tools.alerts.judge_or_agent import AnchorEvidence
from traceweir.streams.tools.anchors.reading import AnchorReader
from traceweir.streams.tools.anchors.topics import AnchorsError
from traceweir.streams.tools.anchors.watch import AnchorWatch
from traceweir.streams.worker.kafka.consumer_tasks import ConsumerTaskEndedError
from traceweir.streams.worker.kafka.errors import KafkaUnreachableError
from traceweir.streams.worker.kafka.request_thread import in_request_thread

log = logging.getLogger(__name__)


async def read_evidence(reader: AnchorReader) -> dict[str, AnchorEvidence] | None:
    """Returns what the anchors of each criterion show; None if they cannot be read now, which is logged.

    No error ends the watch: without anchors, an alert is as true, and only its verdict stays what it was.

    Args:
        reader: What has read the verdicts before. A caller that is cancelled uses another one afterwards.
    """
    try:
        found = await read_apart(reader, utc_now())
    except (AnchorsError, KafkaUnreachableError, ConsumerTaskEndedError, KafkaError, OSError) as error:
        problem = str(error) or repr(error)
    except Exception as error:  # noqa: BLE001  # whatever it is, the watch of alerts goes on
        problem = f"a fault of Traceweir: {error!r}"
    else:
        return {name: AnchorEvidence(each.judge, each.changes) for name, each in found.criteria.items()}
    log.warning("the verdicts on anchors cannot be read: %s", printable(problem, 500))
    return None


async def read_apart(reader: AnchorReader, now: datetime) -> AnchorWatch:
    """Returns the judges, which a thread with an event loop of its own reads.

    A first reading of a year of verdicts takes seconds, and heartbeats must not wait for it.

    Args:
        reader: Reads them.
        now: The present time.
    """
    return await in_request_thread(lambda: asyncio.run(reader.watch(now)))
