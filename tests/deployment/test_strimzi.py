"""Topics and users for Strimzi are those that the code creates and the document on access control lists."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from tests.support.known_topics import OF_COMMANDS
from tests.support.kustomize import render
from tests.support.paths import ROOT

from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import ALL_STAGES, STAGES, CleanupPolicy, StageName, application_id, changelog
from traceweir.streams.worker.kafka.topic_options import options_at_creation

ROW = re.compile(r"^\| `([a-z._-]+)` \| ([a-z, ]+) \| ([a-z, ]+) \|$", re.MULTILINE)
TABLE = {
    name: (set(writers.split(", ")), set(readers.split(", ")))
    for name, writers, readers in ROW.findall((ROOT / "docs" / "access-control.md").read_text("utf-8"))
}
APPLICATIONS: dict[str, list[tuple[StageName, ...]]] = {
    "overlays/strimzi": [STAGES],
    "overlays/strimzi-opentelemetry": [ALL_STAGES],
    "overlays/strimzi-per-stage": [(stage,) for stage in STAGES],
}
OTHERS = {
    "traceweir-alerts": ("alerts", ["traceweir.alerts"]),
    "traceweir-agents": ("agents", []),
    "traceweir-anchors": ("anchors", []),
    "traceweir-config": ("config", []),
    "traceweir-dashboard": ("dashboard", []),
    "traceweir-eval": ("eval", []),
    "traceweir-export": (
        "export",
        [
            "traceweir.export-otlp",
            "traceweir.export-otlp-traces",
            "traceweir.export-webhook",
            "traceweir.export-webhook-alerts",
        ],
    ),
    "traceweir-label": ("label", []),
    "traceweir-replay": ("replay", []),
    "traceweir-shadow": ("shadow", []),
}
"""The roles of the table that are no worker, and their groups. Readers have users and groups of their own."""
Rights = dict[tuple[str, str, str], set[str]]
SHADOWS = "traceweir.results.shadow."
"""What the topics of challengers begin with."""
SCORING = [changelog(application_id("traceweir.", stages)) for stages in (STAGES, ALL_STAGES, ("score",))]
"""The changelogs of all workers that score, whose verdicts a shadow reads."""
MORE: dict[str, Rights] = {
    "traceweir-alerts": {("transactionalId", "literal", "traceweir.alerts"): {"Describe", "Write"}},
    "traceweir-config": {
        ("topic", "prefix", SHADOWS): {"Create", "Read", "Write"},
        ("transactionalId", "literal", "traceweir.configs"): {"Describe", "Write"},
    },
    "traceweir-dashboard": {
        ("topic", "prefix", SHADOWS): {"Read"},
        ("topic", "literal", "traceweir.network"): {"DescribeConfigs", "Read"},
        ("group", "prefix", "traceweir."): {"Describe"},
    },
    "traceweir-export": {
        ("transactionalId", "prefix", f"{group}-"): {"Describe", "Write"} for group in OTHERS["traceweir-export"][1]
    },
    "traceweir-replay": {("transactionalId", "literal", "traceweir.dlq"): {"Describe", "Write"}},
    "traceweir-shadow": {
        **{("topic", "literal", name): {"Read"} for name in SCORING},
        ("topic", "prefix", SHADOWS): {"Create", "Delete", "Read", "Write"},
        ("topic", "prefix", "traceweir.candidates.shadow."): {"Create", "Delete", "Read", "Write"},
        ("topic", "prefix", "traceweir.shadow."): {"Create", "Delete", "Read", "Write"},
        ("group", "prefix", "traceweir.shadow."): {"Delete", "Read"},
        ("transactionalId", "prefix", "traceweir.shadow."): {"Describe", "Write"},
    },
}
"""What the page says of these roles below its first table."""
every = pytest.mark.parametrize("name", APPLICATIONS)


def of(name: str, kind: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each["spec"] for each in render(ROOT / "k8s" / name) if each["kind"] == kind}


def topics_of(name: str) -> dict[str, Any]:
    """The topics by the name that Kafka knows: Kubernetes takes no underscore."""
    return {spec.pop("topicName", resource): spec for resource, spec in of(name, "KafkaTopic").items()}


def settings(name: str) -> Settings:
    (found,) = [
        each["data"]
        for each in render(ROOT / "k8s" / name)
        if each["kind"] == "ConfigMap" and each["metadata"]["name"] == "traceweir-settings"
    ]
    return Settings(
        partitions=int(found["TRACEWEIR_PARTITIONS"]), replication_factor=int(found["TRACEWEIR_REPLICATION_FACTOR"])
    )


@every
def test_the_topics_are_those_that_the_commands_create_and_none_is_forgotten(name: str) -> None:
    own = settings(name)
    days = own.topics.retention_days()
    names = [changelog(application_id(own.topic_prefix, stages)) for stages in APPLICATIONS[name]]
    changelogs: dict[str, CleanupPolicy] = dict.fromkeys(names, "compact")
    expected = {
        topic: {
            "partitions": own.partitions,
            "replicas": own.replication_factor,
            "config": {
                option: yaml.safe_load(value)
                for option, value in options_at_creation(policy, days.get(topic), own.replication_factor).items()
            },
        }
        for topic, policy in (own.topics.cleanup_policies(ALL_STAGES) | OF_COMMANDS | changelogs).items()
    }
    assert topics_of(name) == expected


@every
def test_each_topic_is_named_in_the_rights_of_a_user(name: str) -> None:
    named = {resource for spec in of(name, "KafkaUser").values() for kind, _, resource in acls(spec) if kind == "topic"}
    assert topics_of(name).keys() <= named


@every
def test_each_user_has_the_rights_of_the_table_and_no_others(name: str) -> None:
    users = of(name, "KafkaUser")
    expected = {user: rights((role,), groups) | MORE.get(user, {}) for user, (role, groups) in OTHERS.items()}
    for stages in APPLICATIONS[name]:
        application = application_id("traceweir.", stages)
        found = rights(stages, [application])
        found |= {("topic", "prefix", "traceweir."): {"Describe", "DescribeConfigs"}}
        found |= {("topic", "literal", changelog(application)): {"Read", "Write"}}
        if "score" in stages:
            found |= {("topic", "prefix", SHADOWS): {"Write"}}
        found |= {("transactionalId", "prefix", f"{application}-"): {"Describe", "Write"}}
        expected["traceweir-worker" if len(stages) > 1 else f"traceweir-{stages[0]}"] = found
    assert {user: acls(spec) for user, spec in users.items()} == expected


def rights(roles: tuple[str, ...], groups: list[str]) -> Rights:
    found = {
        ("topic", "literal", topic): {
            *(["Write"] if writers & set(roles) else []),
            *(["Read"] if readers & set(roles) else []),
        }
        for topic, (writers, readers) in TABLE.items()
        if not topic.endswith("-changelog")
    }
    found = {resource: operations for resource, operations in found.items() if operations}
    return found | {("group", "literal", group): {"Read"} for group in groups}


def acls(spec: Any) -> Rights:
    assert spec["authorization"]["type"] == "simple"
    return {
        (each["resource"]["type"], each["resource"]["patternType"], each["resource"]["name"]): set(each["operations"])
        for each in spec["authorization"]["acls"]
    }


def test_each_resource_names_the_cluster_of_strimzi() -> None:
    for file in (ROOT / "k8s" / "parts" / "strimzi").glob("[tu]*s.yaml"):
        for document in yaml.safe_load_all(file.read_text("utf-8")):
            assert document["metadata"]["labels"] == {"strimzi.io/cluster": "kafka"}
