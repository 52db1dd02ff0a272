"""KEDA asks the brokers as the workers do, and nobody else owns the number of workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from tests.support.commands import blocks
from tests.support.kustomize import Manifest, render
from tests.support.paths import ROOT

from traceweir.streams.base.setting_groups.kafka import SaslMechanism, SecurityProtocol
from traceweir.streams.base.settings import Settings
from traceweir.streams.base.topics import STAGES, application_id

OVERLAY = ROOT / "k8s" / "overlays" / "autoscaling"
SASL: dict[str, str | None] = {
    "PLAIN": "plaintext",
    "SCRAM-SHA-256": "scram_sha256",
    "SCRAM-SHA-512": "scram_sha512",
    "OAUTHBEARER": None,
}
"""KEDA's word for a mechanism; None: KEDA needs more than the worker's settings and secret."""
TLS: dict[str, str] = {
    "PLAINTEXT": "disable",
    "SASL_PLAINTEXT": "disable",
    "SSL": "enable",
    "SASL_SSL": "enable",
}


def only(kind: str, manifests: list[Manifest]) -> Any:
    (found,) = [each for each in manifests if each["kind"] == kind and each["metadata"]["name"] != "traceweir-eval"]
    return found


@pytest.fixture(name="manifests")
def rendered() -> list[Manifest]:
    return render(OVERLAY)


def container(manifests: list[Manifest]) -> Any:
    return only("StatefulSet", manifests)["spec"]["template"]["spec"]["containers"][0]


def environment(manifests: list[Manifest]) -> dict[str, str]:
    """The worker's variables that come from the ConfigMap of the settings."""
    assert {"configMapRef": {"name": "traceweir-settings"}} in container(manifests)["envFrom"]
    return dict(only("ConfigMap", manifests)["data"])


def test_keda_asks_the_brokers_of_the_workers(manifests: list[Manifest]) -> None:
    for trigger in only("ScaledObject", manifests)["spec"]["triggers"]:
        asked = trigger["metadata"]
        assert "bootstrapServers" not in asked
        assert asked["bootstrapServersFromEnv"] in environment(manifests)
        assert asked["bootstrapServersFromEnv"] == "TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"
        assert asked["version"] == "2.1.0"  # Kafka 4 speaks no older protocol (KIP-896), and KEDA's default is 1.0.0
        assert trigger["authenticationRef"] == {"name": only("TriggerAuthentication", manifests)["metadata"]["name"]}
        assert not {"sasl", "tls"} & asked.keys()  # KEDA refuses what stands in both


def test_keda_logs_in_with_the_secrets_of_the_workers(manifests: list[Manifest]) -> None:
    login = only("TriggerAuthentication", manifests)["spec"]
    taken = {each["parameter"]: (each["name"], each["key"]) for each in login["secretTargetRef"]}
    variables = {
        each["name"]: each["valueFrom"]["secretKeyRef"]
        for each in container(manifests)["env"]
        if "secretKeyRef" in each.get("valueFrom", {})
    }
    for parameter, variable in (("username", "USERNAME"), ("password", "PASSWORD")):
        reference = variables[f"TRACEWEIR_KAFKA_SASL_{variable}"]
        assert taken[parameter] == (reference["name"], reference["key"])
    pod = only("StatefulSet", manifests)["spec"]["template"]["spec"]
    (volume,) = [each["secret"]["secretName"] for each in pod["volumes"] if each["name"] == "tls"]
    assert {parameter: taken[parameter] for parameter in ("ca", "cert", "key")} == {
        "ca": (volume, "ca.crt"),
        "cert": (volume, "tls.crt"),
        "key": (volume, "tls.key"),
    }
    assert taken.keys() == {"username", "password", "ca", "cert", "key"}


def test_keda_and_the_workers_mean_the_same_protocol(manifests: list[Manifest]) -> None:
    variables = environment(manifests)
    login = only("TriggerAuthentication", manifests)["spec"]
    words = {each["parameter"]: variables[each["name"]] for each in login["env"]}
    assert all(each["containerName"] == container(manifests)["name"] for each in login["env"])
    assert words == words_for(variables)


def words_for(variables: dict[str, str]) -> dict[str, str | None]:
    """What KEDA has to be told for these settings of the workers."""
    named = {
        name: variables.get(f"TRACEWEIR_{name.upper()}") for name in ("kafka_security_protocol", "kafka_sasl_mechanism")
    }
    defaults = {name: Settings.model_fields[name].default for name in named}
    protocol, mechanism = (named[name] or defaults[name] for name in named)
    return {"sasl": SASL[mechanism] if protocol.startswith("SASL_") else "none", "tls": TLS[protocol]}


def test_each_protocol_has_a_word_of_keda() -> None:
    assert set(SASL) == set(get_args(SaslMechanism))
    assert set(TLS) == set(get_args(SecurityProtocol))


def test_the_example_of_a_secured_cluster_tells_keda_what_it_tells_the_workers() -> None:
    examples = [yaml.safe_load(block) for block in blocks((ROOT / "k8s" / "README.md").read_text("utf-8"), "yaml")]
    (example,) = [each for each in examples if "../traceweir/k8s/overlays/autoscaling" in each["resources"]]
    (generator,) = [each for each in example["configMapGenerator"] if each["name"] == "traceweir-settings"]
    variables = dict(literal.split("=", 1) for literal in generator["literals"])
    assert {"sasl": variables["KEDA_KAFKA_SASL"], "tls": variables["KEDA_KAFKA_TLS"]} == words_for(variables)
    assert variables["TRACEWEIR_KAFKA_SECURITY_PROTOCOL"] == "SASL_SSL"
    assert "replicas" not in example


def test_the_autoscaler_owns_the_number_of_workers(manifests: list[Manifest]) -> None:
    target = only("ScaledObject", manifests)["spec"]["scaleTargetRef"]
    worker = only("StatefulSet", manifests)
    assert (target["apiVersion"], target["kind"], target["name"]) == (
        worker["apiVersion"],
        worker["kind"],
        worker["metadata"]["name"],
    )
    assert "replicas" not in worker["spec"]  # each apply would set it back


def test_workers_are_added_for_unread_records_only_and_up_to_one_a_partition(manifests: list[Manifest]) -> None:
    scaled = only("ScaledObject", manifests)["spec"]
    partitions = int(environment(manifests)["TRACEWEIR_PARTITIONS"])
    own = Settings(partitions=partitions)
    base = only("StatefulSet", render(ROOT / "k8s" / "base"))["spec"]["replicas"]
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (base, partitions)
    assert {trigger["metadata"]["topic"] for trigger in scaled["triggers"]} <= set(own.topics.cleanup_policies(STAGES))
    for trigger in scaled["triggers"]:
        assert trigger["metadata"]["consumerGroup"] == application_id(own.topic_prefix, STAGES)
        assert int(trigger["metadata"]["lagThreshold"]) > 10 * partitions  # each has an unread mark for ever


def test_only_an_overlay_with_an_autoscaler_leaves_the_number_open() -> None:
    for folder in sorted(Path(ROOT / "k8s" / "overlays").glob("*/kustomization.yaml")):
        found = render(folder.parent)
        scaled = {each["spec"]["scaleTargetRef"]["name"] for each in found if each["kind"] == "ScaledObject"}
        open_ones = {
            each["metadata"]["name"]
            for each in found
            if each["kind"] in ("Deployment", "StatefulSet") and "replicas" not in each["spec"]
        }
        assert open_ones == scaled, folder
