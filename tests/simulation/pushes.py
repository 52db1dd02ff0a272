"""Pushes of configs while the workers run: transactions on the topic `configs`, and records of other programs on it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.audit.config_topic import ConfigTopic
from tests.simulation.cluster.batches import Sent, batch_of
from tests.simulation.cluster.broker import Cluster
from tests.support.ledger import PARTITIONS
from tests.support.pushes import ALL, Document, Push, Pushes

from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.scoring.configs.records import HOME, records_of

FIRST_PRODUCER = 5_000_000
"""Ids of producers that the coordinator never gives."""


class ConfigPushes:
    """Pushes configs in a simulated world.

    A push is a transaction whose marker comes later. As in `traceweir config push`, a push that begins ends the one that
    is still open.

    Args:
        cluster: The cluster.
        topic: The topic `configs`.
        files: The config files of the workers; the first is that with which they start.
        apps: The apps that the load has.
        judged: The criterion whose judge gets certificates; None: none does.
    """

    def __init__(
        self, cluster: Cluster, topic: str, files: Sequence[Document], apps: Sequence[str], judged: str | None = None
    ) -> None:
        self._cluster, self._topic, self._files = cluster, topic, files
        self._drawn = Pushes(files[0], apps, judged)
        self._end: Callable[[bool], None] = lambda committed: None
        self._count = 0
        self.letters: list[tuple[bytes | None, bytes | None]] = []
        """The keys and values of the records that must become dead letters."""
        self._refused: list[tuple[bytes | None, bytes | None]] = []

    def push(self, rnd: random.Random, *, certificates: bool = False) -> str:
        """Pushes a config, or withdraws one; returns what happens.

        Args:
            rnd: Draws it.
            certificates: Whether only the certificates of the config in effect change.
        """
        self._end(False)
        push = self._drawn.draw_of_certificates(rnd) if certificates else self._drawn.draw(rnd)
        aborts, in_s = rnd.random() < 0.1, rnd.choice((0.01, 0.01, 1.0, 3.0)) * rnd.random()
        end = self._begin(push)
        self._cluster.after(in_s, lambda: end(not aborts))
        return f"{push.what}, and {'aborted' if aborts else 'committed'} after {in_s:.2f} s"

    def push_the_last(self, rnd: random.Random) -> None:
        """Puts another config in effect for each session, at once."""
        self._end(False)
        for push in self._drawn.draw_the_last(rnd):
            self._begin(push)(True)

    def send_refused(self, rnd: random.Random) -> str:
        """Writes a record that is no config, as another program can; returns what it is."""
        found = self._drawn.refusal(rnd, PARTITIONS, newer=ALL)  # pushes of this world heed no record
        self._refused.append((found.key, found.value))
        if found.is_letter:
            self.letters.append((found.key, found.value))
        self._append(found.partition, [(found.key, found.value)])
        return found.what

    def topic(self, rows: Sequence[object]) -> ConfigTopic:
        """Returns what the topic says, from its committed records."""
        digests = {read_plan(document).digest for document in self._files}
        return ConfigTopic(rows, self._refused, digests)  # type: ignore[arg-type]

    def _append(
        self, partition: int, found: Sequence[tuple[bytes | None, bytes | None]], producer: int | None = None
    ) -> None:
        records = [Sent(key, value, self._cluster.now_ms()) for key, value in found]
        self._cluster.append((self._topic, partition), batch_of(records, producer))

    def _begin(self, push: Push) -> Callable[[bool], None]:
        """Writes the records of a push; returns what ends its transaction."""
        self._count += 1
        producer = FIRST_PRODUCER + self._count
        self._append(HOME, records_of(self._drawn.version(push)), producer)
        over: list[bool] = []

        def end(committed: bool) -> None:
            if not over:
                over.append(committed)
                self._cluster.mark((self._topic, HOME), producer, 0, commit=committed)
                if committed:
                    self._drawn.note(push)

        self._end = end
        return end
