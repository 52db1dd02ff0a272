"""The OpenTelemetry Collector of docker-compose.yml and of `k8s/`, as far as it can be tested without its image."""

from __future__ import annotations

from typing import Any

import yaml
from tests.support.kustomize import render
from tests.support.paths import ROOT

from traceweir.streams.base.settings import Settings
from traceweir.streams.worker.kafka.topic_options import KAFKAS_BATCH_BYTES

CONFIG = ROOT / "k8s" / "parts" / "collector" / "collector.yaml"
COLLECTOR: dict[str, Any] = yaml.safe_load(CONFIG.read_text("utf-8"))
KAFKA = COLLECTOR["exporters"]["kafka"]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
MANIFESTS = {each["kind"]: each for each in render(ROOT / "k8s" / "parts" / "collector")}
CONTAINER = MANIFESTS["Deployment"]["spec"]["template"]["spec"]["containers"][0]


def port_of(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])


def test_each_pipeline_uses_what_is_configured_and_everything_configured_is_used() -> None:
    pipelines = COLLECTOR["service"]["pipelines"]
    assert pipelines.keys() == {"traces", "logs"}
    for kind in ("receivers", "processors", "exporters"):
        for pipeline in pipelines.values():
            assert pipeline[kind] == [*COLLECTOR[kind]]
    assert COLLECTOR["service"]["extensions"] == [*COLLECTOR["extensions"]]


def test_spans_and_logs_go_to_the_topics_that_collect_reads_in_an_encoding_that_it_reads() -> None:
    topics = Settings().topics
    assert KAFKA["traces"] == {"topic": topics.otlp_spans, "encoding": "otlp_proto"}
    assert KAFKA["logs"] == {"topic": topics.otlp_logs, "encoding": "otlp_proto"}


def test_a_batch_fits_into_a_record_and_no_topic_is_created_with_another_number_of_partitions() -> None:
    batch, producer = KAFKA["sending_queue"]["batch"], KAFKA["producer"]
    assert batch["sizer"] == "bytes"
    assert batch["min_size"] <= batch["max_size"] < producer["max_message_bytes"] < KAFKAS_BATCH_BYTES
    assert KAFKA["sending_queue"]["queue_size"] > batch["max_size"]
    assert (producer["required_acks"], producer["allow_auto_topic_creation"]) == (-1, False)


def test_the_ports_are_those_of_otlp_everywhere() -> None:
    protocols = COLLECTOR["receivers"]["otlp"]["protocols"]
    ports = {port_of(protocols["grpc"]["endpoint"]), port_of(protocols["http"]["endpoint"])}
    settings = Settings()
    assert ports == {settings.otlp_grpc_port, settings.otlp_http_port}
    assert {int(each.split(":")[1]) for each in COMPOSE["collector"]["ports"]} == ports
    named = {each["name"]: each["containerPort"] for each in CONTAINER["ports"]}
    service = MANIFESTS["Service"]["spec"]["ports"]
    assert {named[each["targetPort"]] for each in service} == {each["port"] for each in service} == ports
    assert named["health"] == port_of(COLLECTOR["extensions"]["health_check"]["endpoint"])


def test_it_finds_its_configuration_and_kafka() -> None:
    source, target, mode = COMPOSE["collector"]["volumes"][0].split(":")
    assert (ROOT / source).resolve() == CONFIG
    assert (target, mode) == ("/etc/otelcol/config.yaml", "ro")  # where the image looks without arguments
    assert MANIFESTS["ConfigMap"]["data"]["collector.yaml"] == CONFIG.read_text("utf-8")
    mounted = CONTAINER["volumeMounts"][0]["mountPath"]
    assert CONTAINER["args"] == [f"--config={mounted}/collector.yaml"]
    assert KAFKA["brokers"] == "${env:TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS}"
    environment = COMPOSE["collector"]["environment"]
    assert (
        environment["TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"]
        in COMPOSE["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    )
    assert [each["name"] for each in CONTAINER["env"]] == ["TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"]


def test_it_is_the_same_image_and_may_do_nothing_that_it_need_not() -> None:
    assert CONTAINER["image"] == COMPOSE["collector"]["image"]
    assert COMPOSE["collector"]["cap_drop"] == ["ALL"]
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    pod = MANIFESTS["Deployment"]["spec"]["template"]["spec"]
    assert (pod["securityContext"]["runAsNonRoot"], pod["automountServiceAccountToken"]) == (True, False)
    assert "memory" in CONTAINER["resources"]["limits"]  # what memory_limiter measures against
