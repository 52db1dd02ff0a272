"""Makes and removes anchors for `traceweir anchors`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from traceweir.schemas.anchor import Anchor
from traceweir.schemas.figures import counted
from traceweir.schemas.text import listed, printable, shell_command
from traceweir.streams.base.clock import utc_now
from traceweir.streams.cli.errors import FAILED
from traceweir.streams.cli.terminal import complain
from traceweir.streams.cli.up_broker import kafka_settings
from traceweir.streams.tools.anchors.choosing import chosen_anchors, labelled_subjects, unlabelled
from traceweir.streams.tools.anchors.topics import AnchorsError, anchors_writer, by_key, read_anchors, read_revisions
from traceweir.streams.tools.labels.topic import read_labels


def add_anchors(criterion: str | None, limit: int, *, only_random: bool) -> int:
    """Makes anchors of the labels of the topic, says what was done, and returns the exit code.

    Raises:
        AnchorsError: a topic is missing or wrong, or cannot be read.
        KafkaUnreachableError: no broker answers.
        LabelsError: the labels cannot be read.
        NotReadyError: Kafka did not accept an anchor.
    """
    settings = kafka_settings()
    labels = asyncio.run(read_labels(settings)).by_id.values()
    known = asyncio.run(read_anchors(settings)).by_id
    subjects, refused = labelled_subjects(labels, criterion)
    stale = unlabelled(known, subjects, criterion)
    if only_random:
        refused["not drawn at random"] += sum(len(each.labels) for each in subjects if not each.is_random)
        subjects = [each for each in subjects if each.is_random]
    frozen = asyncio.run(read_revisions(settings, {each.subject.session_id for each in subjects}))
    found = chosen_anchors(subjects, frozen, known, limit, utc_now())
    if found.anchors:
        anchors_writer(settings).write(by_key(found.anchors))
    for name in sorted({each.criterion for each in found.anchors}):
        complain(_added(name, [each for each in found.anchors if each.criterion == name], known))
    for why, number in sorted((refused + found.refused).items()):
        complain(f"not used: {counted(number, 'label')} {printable(why)}")
    if stale:
        complain(
            f"the labels of {counted(len(stale), 'anchor')} are withdrawn, or differ. The anchors stay until you remove them: "
            f"{shell_command('traceweir', 'anchors', 'remove', *(each.anchor_id for each in stale))}"
        )
    if found.anchors:
        complain("start `traceweir anchors run` again, which reads the anchors when it starts")
        return 0
    if found.refused["an anchor already"]:
        complain("there is nothing new")
        return 0
    complain(f"no label of {settings.topics.labels} became an anchor: label sessions on the page Review first")
    return FAILED


def _added(criterion: str, anchors: Sequence[Anchor], known: dict[str, Anchor]) -> str:
    labels = Counter(each.label for each in anchors)
    others = sum(each.drawn != "random" for each in anchors)
    of_others = f"; {others:,} of them not drawn at random, so they need not be like what is judged" if others else ""
    anew = any(each.criterion == criterion for each in known.values())
    again = ". What the judge usually says is learnt again" if anew else ""
    return (
        f"{printable(criterion, 100)}: {counted(len(anchors), 'anchor')} ({labels['pass']:,} pass, {labels['fail']:,} fail)"
        f"{of_others}{again}"
    )


def remove_anchors(ids: Sequence[str]) -> int:
    """Removes anchors; returns the exit code.

    Raises:
        AnchorsError: the anchors cannot be read, or there is no anchor with one of the ids.
        KafkaUnreachableError: no broker answers.
        NotReadyError: Kafka did not accept a tombstone.
    """
    settings = kafka_settings()
    known = asyncio.run(read_anchors(settings)).by_id
    if missing := [each for each in ids if each not in known]:
        raise AnchorsError(
            f"no anchor of {settings.topics.anchors} has the id {listed(missing, 80, separator=', ')}: nothing was removed. "
            "`traceweir anchors list --ids` lists the ids"
        )
    anchors_writer(settings).write({each.encode(): None for each in dict.fromkeys(ids)})
    complain(f"{counted(len(set(ids)), 'anchor')} removed")
    return 0
