"""Tests that docs/access-control.md names the rights that the stages need, and no others for workers."""

from __future__ import annotations

import re
from dataclasses import asdict
from inspect import getmembers, isfunction
from pathlib import Path

import pytest
from tests.support.known_topics import OF_COMMANDS

from traceweir.streams.base import topics
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import (
    ALL_STAGES,
    DEFAULT_PREFIX,
    STAGES,
    StageName,
    Topics,
    application_id,
    changelog,
    exports_topic,
)
from traceweir.streams.pipeline.topology import topics_of

PAGE = (Path(__file__).parents[3] / "docs" / "access-control.md").read_text("utf-8")
TOPICS = Topics.of()


def table(heading: str) -> list[list[str]]:
    """Returns the cells of the table below a heading, without the header and the code marks."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("`", "") for cell in row] for row in rows[2:]]


ROWS = {topic: (set(write.split(", ")), set(read.split(", "))) for topic, write, read in table("Topics")}


def test_every_topic_has_a_row() -> None:
    changelogs = {changelog(application_id("traceweir.", [stage])) for stage in ALL_STAGES}
    assert set(ROWS) == set(asdict(TOPICS).values()) | changelogs | OF_COMMANDS.keys()


def test_no_topic_of_a_command_is_forgotten() -> None:
    functions = [each for name, each in getmembers(topics, isfunction) if name.endswith("_topic")]
    assert {function(DEFAULT_PREFIX) for function in functions} == OF_COMMANDS.keys()


@pytest.mark.parametrize("stage", ALL_STAGES)
def test_a_stage_has_the_rights_on_its_topics_and_on_no_other(stage: StageName) -> None:
    needed, own = topics_of(stage, TOPICS), changelog(application_id("traceweir.", [stage]))
    assert {topic for topic, (write, _) in ROWS.items() if stage in write} == {
        *needed.outputs,
        *needed.also_written,
        own,
    }
    assert {topic for topic, (_, read) in ROWS.items() if stage in read} == {*needed.inputs, *needed.followed, own}


def test_agents_write_only_topics_from_outside() -> None:
    outside = {TOPICS.otlp_spans, TOPICS.otlp_logs, TOPICS.traces, TOPICS.invocations, TOPICS.references}
    assert {topic for topic, (write, _) in ROWS.items() if "agents" in write} == outside


def test_a_replay_writes_the_inputs_and_its_marks_and_reads_the_originals() -> None:
    inputs = {topic for stage in ALL_STAGES for topic in topics_of(stage, TOPICS).inputs}
    assert {topic for topic, (_, read) in ROWS.items() if "replay" in read} == inputs | {
        TOPICS.dead_letters,
        TOPICS.results,
    }
    written = inputs - {TOPICS.strays, TOPICS.spans} | {
        TOPICS.dead_letters,
        TOPICS.export_waiting,
    }  # forwarded records go to the topic that they came from
    assert {topic for topic, (write, _) in ROWS.items() if "replay" in write} == written


def test_an_exporter_reads_scores_alerts_and_what_waits_and_writes_what_its_target_has_not_taken() -> None:
    written = {TOPICS.dead_letters, TOPICS.export_waiting, exports_topic(DEFAULT_PREFIX)}
    assert {topic for topic, (write, _) in ROWS.items() if "export" in write} == written
    read = {TOPICS.results, TOPICS.alerts, TOPICS.export_waiting, exports_topic(DEFAULT_PREFIX)}
    assert {topic for topic, (_, read) in ROWS.items() if "export" in read} == read


def test_the_page_names_the_topics_without_text_of_agents() -> None:
    named = re.search(r"is in all topics but (.*?), without redaction", PAGE, re.DOTALL)
    assert named is not None
    assert set(re.findall(r"`(.+?)`", named[1])) == {
        TOPICS.network,
        exports_topic(DEFAULT_PREFIX),
        TOPICS.anchor_verdicts,
    }


@pytest.mark.parametrize("stages", [*((stage,) for stage in ALL_STAGES), STAGES, ALL_STAGES])
def test_groups_and_transactional_ids_are_those_of_the_application(stages: tuple[StageName, ...]) -> None:
    application = application_id(Settings.model_fields["topic_prefix"].default, stages)
    (named,) = [
        (group, identifier) for client, group, identifier in table("Groups and transactional ids") if client == "worker"
    ]
    default = application_id(DEFAULT_PREFIX, STAGES)
    rule = f"{DEFAULT_PREFIX} and its stages with - between; by default {default}"
    assert named == (rule, "prefixed with the group and -")
    assert application == DEFAULT_PREFIX + "-".join(stages)
    assert changelog(application) == f"{application}-state-changelog"
    assert changelog(default) in PAGE
