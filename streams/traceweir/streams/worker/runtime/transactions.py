"""Decides whether a process writes with transactions: workers, shadows, and the commands that write."""

from __future__ import annotations

from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.topic_admin import check_transactions


def usable_transactions(settings: Settings, *, embedded: bool) -> bool:
    """Returns whether what belongs together is written in one transaction.

    Raises:
        KafkaUnreachableError: no broker answers.
        NotReadyError: the settings require transactions that the broker lacks.
    """
    if embedded and settings.delivery == "exactly_once":
        raise NotReadyError(
            "delivery is exactly_once, but the embedded broker has no transactions; "
            "use Apache Kafka, or set TRACEWEIR_DELIVERY=auto"
        )
    transactions = settings.delivery == "exactly_once" or (settings.delivery == "auto" and not embedded)
    if transactions and (problems := check_transactions(settings)):
        raise NotReadyError("\n".join(problems))
    return transactions
