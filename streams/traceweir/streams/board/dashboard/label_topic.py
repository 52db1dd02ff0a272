"""Writes the labels that clients send to the topic `labels`, one request after another."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from traceweir.schemas.labels import Label
from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.settings import Settings
from traceweir.streams.tools.labels.topic import labels_writer, write_labels

ANSWER_WITHIN_S = 10.0
"""How long Kafka has to accept a label."""


class LabelTopic:
    """The topic `labels` of a deployment.

    Args:
        settings: Where Kafka is.
    """

    def __init__(self, settings: Settings) -> None:
        self._writer = labels_writer(settings, "Send it again", ANSWER_WITHIN_S)
        self._writing = threading.Lock()

    def write(self, labels: Sequence[Label]) -> None:
        """Writes labels, and waits until Kafka has accepted them.

        Raises:
            KafkaUnreachableError: no broker answers.
            NotReadyError: the topic is missing or wrong, or Kafka did not accept a label, or one before it, in time.
        """
        # Without Kafka, requests that wait for each other would occupy all threads, and no page would be answered.
        if not self._writing.acquire(timeout=ANSWER_WITHIN_S):
            raise NotReadyError("Kafka has not accepted the labels before this one yet. Send it again")
        try:
            write_labels(self._writer, labels)
        finally:
            self._writing.release()
