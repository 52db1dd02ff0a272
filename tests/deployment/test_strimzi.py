"""Topics and users for Strimzi are those that the code creates and the document on access control lists."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from tests.support.kustomize import render
from tests.support.paths import ROOT

from traceweir.streams.kafka.topic_options import options_at_creation
from traceweir.streams.kafka.topic_problems import expected_topics
from traceweir.streams.settings import Settings
from traceweir.streams.topics import STAGES, StageName, application_id, changelog

ROW = re.compile(r"\| `([a-z._-]+)` \| ([a-z, ]+) \| ([a-z, ]+) \| (?:raw|redacted) \|")
TABLE = {
    name: (set(writers.split(", ")), set(readers.split(", ")))
    for name, writers, readers in ROW.findall((ROOT / "docs" / "access-control.md").read_text("utf-8"))
}
APPLICATIONS: dict[str, list[tuple[StageName, ...]]] = {
    "overlays/strimzi": [STAGES],
    "overlays/strimzi-per-stage": [(stage,) for stage in STAGES],
}
OTHERS = {
    "traceweir-agents": ("agents", []),
    "traceweir-dashboard": ("dashboard", []),
    "traceweir-export": (
        "export",
        ["traceweir.export-otlp", "traceweir.export-otlp-traces", "traceweir.export-webhook"],
    ),
}
SHADOWS = "traceweir.results.shadow."
"""What the topics of challengers begin with."""
every = pytest.mark.parametrize("name", APPLICATIONS)


def of(name: str, kind: str) -> dict[str, Any]:
    return {each["metadata"]["name"]: each["spec"] for each in render(ROOT / "k8s" / name) if each["kind"] == kind}


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
def test_the_topics_are_those_that_the_command_creates(name: str) -> None:
    own = settings(name)
    days = own.topics.retention_days()
    expected = {
        topic: {
            "partitions": own.partitions,
            "replicas": own.replication_factor,
            "config": {
                option: yaml.safe_load(value)
                for option, value in options_at_creation(policy, days.get(topic), own.replication_factor).items()
            },
        }
        for stages in APPLICATIONS[name]
        for topic, policy in expected_topics(own, stages).items()
    }
    assert of(name, "KafkaTopic") == expected


@every
def test_each_user_has_the_rights_of_the_table_and_no_others(name: str) -> None:
    topics = set(of(name, "KafkaTopic"))
    users = of(name, "KafkaUser")
    expected = {user: rights((role,), topics, groups) for user, (role, groups) in OTHERS.items()}
    expected["traceweir-dashboard"] |= {("topic", "prefix", SHADOWS): {"Read"}}
    expected["traceweir-dashboard"] |= {("topic", "literal", "traceweir.network"): {"Read", "DescribeConfigs"}}
    for stages in APPLICATIONS[name]:
        application = application_id("traceweir.", stages)
        found = rights(stages, topics, [application])
        found |= {("topic", "prefix", "traceweir."): {"Describe", "DescribeConfigs"}}
        found |= {("topic", "literal", changelog(application)): {"Read", "Write"}}
        if "score" in stages:
            found |= {("topic", "prefix", SHADOWS): {"Write"}}
        found |= {("transactionalId", "prefix", f"{application}-"): {"Describe", "Write"}}
        expected["traceweir-worker" if stages == STAGES else f"traceweir-{stages[0]}"] = found
    assert {user: acls(spec) for user, spec in users.items()} == expected


def rights(roles: tuple[str, ...], topics: set[str], groups: list[str]) -> dict[tuple[str, str, str], set[str]]:
    found = {
        ("topic", "literal", topic): {
            *(["Write"] if writers & set(roles) else []),
            *(["Read"] if readers & set(roles) else []),
        }
        for topic, (writers, readers) in TABLE.items()
        if topic in topics and not topic.endswith("-changelog")
    }
    found = {resource: operations for resource, operations in found.items() if operations}
    return found | {("group", "literal", group): {"Read"} for group in groups}


def acls(spec: Any) -> dict[tuple[str, str, str], set[str]]:
    assert spec["authorization"]["type"] == "simple"
    return {
        (each["resource"]["type"], each["resource"]["patternType"], each["resource"]["name"]): set(each["operations"])
        for each in spec["authorization"]["acls"]
    }


def test_each_resource_names_the_cluster_of_strimzi() -> None:
    for file in (ROOT / "k8s" / "parts" / "strimzi").glob("[tu]*s.yaml"):
        for document in yaml.safe_load_all(file.read_text("utf-8")):
            assert document["metadata"]["labels"] == {"strimzi.io/cluster": "kafka"}
