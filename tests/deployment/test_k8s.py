"""The manifests of `k8s/`: valid for Kubernetes, and fitting the worker that they run."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from tests.support.commands import VARIABLES, blocks, parse, variables_in
from tests.support.kustomize import Manifest, render
from tests.support.paths import ROOT

from traceweir.scorers import read_plan
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings, load_settings
from traceweir.streams.base.topics import ALL_STAGES, STAGES
from traceweir.streams.worker.faust_worker import STOP_WITHIN_S
from traceweir.streams.worker.kafka.topic_options import options_at_creation

K8S = ROOT / "k8s"
KUSTOMIZATIONS = [
    "base",
    "overlays/dev",
    "overlays/one-deployment-per-stage",
    "overlays/opentelemetry",
    "overlays/monitoring",
    "overlays/autoscaling",
    "overlays/dashboard",
    "overlays/export",
    "overlays/alerts",
    "overlays/strimzi",
    "overlays/strimzi-opentelemetry",
    "overlays/strimzi-per-stage",
]
CRDS = ROOT.parent / "shared" / "reference" / "crds"
CUSTOM = [
    ("overlays/monitoring", "ServiceMonitor", "prometheus-servicemonitors.yaml"),
    ("overlays/monitoring", "PrometheusRule", "prometheus-prometheusrules.yaml"),
    ("overlays/autoscaling", "ScaledObject", "keda-scaledobject.yaml"),
    ("overlays/autoscaling", "TriggerAuthentication", "keda-triggerauthentication.yaml"),
    ("overlays/strimzi", "KafkaTopic", "strimzi-kafkatopic.yaml"),
    ("overlays/strimzi", "KafkaUser", "strimzi-kafkauser.yaml"),
    ("overlays/strimzi-opentelemetry", "KafkaTopic", "strimzi-kafkatopic.yaml"),
    ("overlays/strimzi-opentelemetry", "KafkaUser", "strimzi-kafkauser.yaml"),
    ("overlays/strimzi-per-stage", "KafkaTopic", "strimzi-kafkatopic.yaml"),
    ("overlays/strimzi-per-stage", "KafkaUser", "strimzi-kafkauser.yaml"),
]
"""Custom resources, where they are, and the file of their definition."""
OTHERS = {"kafka", "collector"}
"""The containers that run images of other projects."""
VERSIONS = ["1.29", kubernetes_validate.latest_version()]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
KAFKA_SECRETS = {
    "TRACEWEIR_KAFKA_SASL_USERNAME": "traceweir-kafka",
    "TRACEWEIR_KAFKA_SASL_PASSWORD": "traceweir-kafka",
    "TRACEWEIR_KAFKA_OAUTH_CLIENT_SECRET": "traceweir-kafka",
}
SECRETS = {
    "worker": KAFKA_SECRETS | {"TRACEWEIR_USER_ID_KEY": "traceweir-user-ids"},
    "topics": KAFKA_SECRETS,
    "dashboard": KAFKA_SECRETS
    | {f"TRACEWEIR_DASHBOARD_{right}TOKEN": "traceweir-dashboard" for right in ("", "FEEDBACK_", "LABEL_", "READ_")},
    "alerts": KAFKA_SECRETS,
    "export": KAFKA_SECRETS
    | {
        "OTEL_EXPORTER_OTLP_HEADERS": "traceweir-export",
        "TRACEWEIR_WEBHOOK_URL": "traceweir-export",
        "TRACEWEIR_WEBHOOK_SECRET": "traceweir-export",
    },
}
"""The secret of each variable that a container takes from one, by the container's name."""
HASHED = re.compile(r"^(traceweir-(?:settings|eval|collector))-[a-z0-9]{10}$")

every = pytest.mark.parametrize("name", KUSTOMIZATIONS)


@cache
def manifests(name: str) -> list[Manifest]:
    return render(K8S / name)


def of(name: str, kind: str) -> list[Manifest]:
    return [each for each in manifests(name) if each["kind"] == kind]


def pods(name: str) -> list[tuple[Manifest, Manifest]]:
    """Ours, each with the workload that it belongs to."""
    found = [(each, each["spec"]["template"]["spec"]) for each in manifests(name) if "template" in each.get("spec", {})]
    return [(each, pod) for each, pod in found if pod["containers"][0]["name"] not in OTHERS]


def workers(name: str) -> list[tuple[Manifest, Manifest, Manifest]]:
    return [(each, pod, pod["containers"][0]) for each, pod in pods(name) if each["kind"] == "StatefulSet"]


def configured(name: str) -> dict[str, str]:
    (found,) = [each for each in of(name, "ConfigMap") if each["metadata"]["name"] == "traceweir-settings"]
    return dict(found["data"])


def stages_of(arguments: list[str]) -> list[str]:
    return arguments[arguments.index("--stages") + 1].split(",") if "--stages" in arguments else list(STAGES)


# --- valid


@pytest.mark.parametrize("version", VERSIONS)
@every
def test_every_manifest_is_what_kubernetes_takes(name: str, version: str) -> None:
    assert manifests(name)
    for manifest in manifests(name):
        if manifest["kind"] in {kind for _, kind, _ in CUSTOM}:
            continue  # see below
        kubernetes_validate.validate(manifest, version, strict=True)


@every
def test_every_name_is_one_that_kubernetes_takes(name: str) -> None:
    label = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    names = [each["metadata"]["name"] for each in manifests(name)]
    assert [each for each in names if re.fullmatch(rf"{label}(\.{label})*", each) is None] == []


@cache
def definition_in(file: str) -> dict[str, Any]:
    # PyYAML's own parser takes half a second for one.
    found: dict[str, Any] = yaml.load((CRDS / file).read_text("utf-8"), yaml.CSafeLoader)
    return found


@pytest.mark.parametrize(("name", "kind", "file"), CUSTOM)
def test_a_custom_resource_is_what_its_definition_takes(name: str, kind: str, file: str) -> None:
    if not (CRDS / file).exists():
        pytest.skip("needs the definitions of the Prometheus Operator, Strimzi and KEDA: the `crds` of their releases")
    definition = definition_in(file)
    assert definition["spec"]["names"]["kind"] == kind
    schemas = {each["name"]: each["schema"]["openAPIV3Schema"] for each in definition["spec"]["versions"]}
    assert of(name, kind)
    for found in of(name, kind):
        schema = _closed(schemas[found["apiVersion"].rpartition("/")[2]])
        jsonschema.validate(found, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**found, "spec": {**found["spec"], "nonsense": 1}}, schema)


def _closed(schema: Any) -> Any:
    """Returns a schema that refuses fields that it does not name, as Kubernetes drops them."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if isinstance(schema, str) and schema.startswith("^(?i)"):
        return f"(?i)^{schema.removeprefix('^(?i)')}"  # Go takes a flag anywhere, Python at the start
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    is_object = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if is_object and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        closed["additionalProperties"] = False
    return closed


def test_the_rules_are_those_of_prometheus_and_the_monitor_reads_the_workers() -> None:
    (rule,), (monitor,) = of("overlays/monitoring", "PrometheusRule"), of("overlays/monitoring", "ServiceMonitor")
    assert rule["spec"] == yaml.safe_load((ROOT / "monitoring" / "alerts.yaml").read_text("utf-8"))
    (service,) = of("overlays/monitoring", "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_a_field_that_does_not_exist_is_refused() -> None:
    worker = workers("base")[0][0]
    wrong = {**worker, "spec": {**worker["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


@every
def test_what_is_tested_here_is_what_kustomize_builds(name: str) -> None:
    if kustomize := shutil.which("kustomize"):
        command = [kustomize, "build"]
    elif kubectl := shutil.which("kubectl"):
        command = [kubectl, "kustomize"]
    else:
        pytest.skip(
            "needs kustomize: `curl -s https://raw.githubusercontent.com/kubernetes-sigs/kustomize/master/hack/install_kustomize.sh | bash`"
        )
    built = subprocess.run([*command, K8S / name], capture_output=True, text=True, check=True).stdout
    assert keyed(_without_hashes(each) for each in yaml.safe_load_all(built)) == keyed(iter(manifests(name)))


def keyed(found: Iterator[Manifest]) -> dict[tuple[str, str], Manifest]:
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def _without_hashes(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without_hashes(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_without_hashes(each) for each in part]
    return HASHED.sub(r"\1", part) if isinstance(part, str) else part


def test_every_kustomization_is_tested() -> None:
    used = {"parts", *KUSTOMIZATIONS}
    folders = {str(path.parent.relative_to(K8S)) for path in K8S.rglob("kustomization.yaml")}
    assert [folder for folder in folders if not folder.startswith(tuple(used))] == []


# --- fitting


@every
def test_every_variable_is_one_of_ours(name: str) -> None:
    named = variables_in(yaml.safe_dump_all(manifests(name)))
    assert named >= {"TRACEWEIR_GROUP_INSTANCE_ID", "TRACEWEIR_PARTITIONS", "TRACEWEIR_STATE_DIR"}
    assert named <= VARIABLES


@every
def test_the_settings_can_be_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in configured(name).items():
        monkeypatch.setenv(variable, value)
    settings = load_settings()
    for worker, pod, container in workers(name):
        assert worker["spec"].get("replicas", 0) <= settings.partitions
        assert settings.session_timeout_s > pod["terminationGracePeriodSeconds"] > STOP_WITHIN_S
        probe = container["startupProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] >= 60


@every
def test_every_command_is_one_and_every_image_the_one_of_compose(name: str) -> None:
    for _, pod in pods(name):
        for container in pod["containers"]:
            arguments = list(container["args"])
            if "--config" in arguments:
                arguments[arguments.index("--config") + 1] = str(K8S / "parts" / "settings" / "eval.json")
            parse(arguments)
            assert container["image"] == COMPOSE["worker"]["image"]
            assert "command" not in container  # the image's entry point


@every
def test_the_eval_config_makes_a_plan_and_lies_where_the_worker_looks(name: str) -> None:
    (found,) = [each for each in of(name, "ConfigMap") if each["metadata"]["name"] == "traceweir-eval"]
    ((file, text),) = found["data"].items()
    assert read_plan(text).metrics
    for _, pod, container in workers(name):
        (volume,) = [each["name"] for each in pod["volumes"] if each.get("configMap") == {"name": "traceweir-eval"}]
        (mount,) = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == volume]
        assert container["args"][container["args"].index("--config") + 1] == f"{mount}/{file}"


@every
def test_every_stage_runs_in_one_deployment_that_has_its_topics_made(name: str) -> None:
    running = [stages_of(container["args"]) for _, _, container in workers(name)]
    expected = ALL_STAGES if "opentelemetry" in name else STAGES
    assert sorted(stage for stages in running for stage in stages) == sorted(expected)
    made = [stages_of(pod["containers"][0]["args"]) for each, pod in pods(name) if each["kind"] == "Job"]
    assert sorted(made) == sorted(running)


@every
def test_topics_survive_the_loss_of_a_broker_except_on_the_one_node_for_trials(name: str) -> None:
    copies = int(configured(name)["TRACEWEIR_REPLICATION_FACTOR"])
    in_sync = options_at_creation("delete", None, copies).get("min.insync.replicas")
    assert (copies, in_sync) == ((1, None) if name == "overlays/dev" else (3, "2"))


@every
def test_the_probes_ask_the_workers_page(name: str) -> None:
    for _, _, container in workers(name):
        (port,) = container["ports"]
        assert (port["name"], port["containerPort"]) == ("web", Settings().web_port)
        asked = {
            kind: (container[kind]["httpGet"]["path"], container[kind]["httpGet"]["port"])
            for kind in ("startupProbe", "livenessProbe", "readinessProbe")
        }
        assert asked == {
            "startupProbe": ("/healthz", "web"),
            "livenessProbe": ("/healthz", "web"),
            "readinessProbe": ("/readyz", "web"),
        }
        assert {"name": "TRACEWEIR_WEB_HOST", "value": "0.0.0.0"} in container["env"]


def test_the_probes_of_an_exporter_ask_the_page_that_its_option_names_and_monitoring_finds_it() -> None:
    (container,) = [
        pod["containers"][0] for _, pod in pods("overlays/export") if pod["containers"][0]["name"] == "export"
    ]
    (port,) = container["ports"]
    assert (port["name"], str(port["containerPort"])) == (
        "web",
        container["args"][container["args"].index("--port") + 1],
    )
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "web"}
    assert container["livenessProbe"]["tcpSocket"] == {"port": "web"}
    assert {"name": "TRACEWEIR_WEB_HOST", "value": "0.0.0.0"} in container["env"]
    (service,) = [each for each in of("overlays/export", "Service") if each["metadata"]["name"] == "traceweir-export"]
    (monitor,) = of("overlays/monitoring", "ServiceMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in {each["name"] for each in service["spec"]["ports"]}


@every
def test_a_worker_keeps_its_name_and_its_volume(name: str) -> None:
    for worker, _, container in workers(name):
        environment = {each["name"]: each for each in container["env"]}
        instance = environment["TRACEWEIR_GROUP_INSTANCE_ID"]["valueFrom"]
        assert instance == {"fieldRef": {"fieldPath": "metadata.name"}}
        (claim,) = worker["spec"]["volumeClaimTemplates"]
        mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
        assert mounts[environment["TRACEWEIR_STATE_DIR"]["value"]] == claim["metadata"]["name"]


@every
def test_our_pods_may_do_nothing_that_they_need_not(name: str) -> None:
    (uid,) = re.findall(r"--uid (\d+)", DOCKERFILE)
    for _, pod in pods(name):
        context = pod["securityContext"]
        assert (context["runAsNonRoot"], context["runAsUser"]) == (True, int(uid))
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
            assert "memory" in container["resources"]["limits"]


@every
def test_no_secret_is_here_and_none_is_needed_except_the_token_of_the_dashboard(name: str) -> None:
    assert of(name, "Secret") == []
    for _, pod in pods(name):
        for volume in pod["volumes"]:
            assert volume.get("secret", {"optional": True})["optional"]
        for each in _from_secrets(pod["containers"][0]):
            optional = each["valueFrom"]["secretKeyRef"].get("optional", False)
            assert optional or each["name"] == "TRACEWEIR_DASHBOARD_TOKEN"  # a dashboard does not start without one


@every
def test_keys_of_judges_come_from_a_secret_and_reach_the_workers_that_score_only(name: str) -> None:
    for workload, pod in pods(name):
        container = pod["containers"][0]
        scores = workload["kind"] == "StatefulSet" and "score" in stages_of(container["args"])
        found = [each["secretRef"] for each in container["envFrom"] if "secretRef" in each]
        assert found == ([{"name": "traceweir-judge", "optional": True}] if scores else [])


@every
def test_no_secret_has_to_stand_in_the_settings_that_all_can_read(name: str) -> None:
    for _, pod in pods(name):
        container = pod["containers"][0]
        given = {each["name"]: each["valueFrom"]["secretKeyRef"]["name"] for each in _from_secrets(container)}
        assert given == SECRETS[container["name"]]


def _from_secrets(container: Manifest) -> list[Manifest]:
    return [each for each in container["env"] if "secretKeyRef" in each.get("valueFrom", {})]


def test_each_setting_that_is_a_secret_can_be_given_as_one() -> None:
    secret = {
        f"{ENV_PREFIX}{name.upper()}"
        for name, each in Settings.model_fields.items()
        if "Secret" in str(each.annotation)
    }
    by_key_of_a_judge = {
        "TRACEWEIR_JUDGE_API_KEY",
        "TRACEWEIR_JUDGE_TAG_KEY",
    }  # in the secret of all variables of judges
    of_no_pod = {"TRACEWEIR_OTLP_TOKEN"}  # the Collector receives spans here
    assert {variable for each in SECRETS.values() for variable in each if variable.startswith(ENV_PREFIX)} == (
        secret | {"TRACEWEIR_KAFKA_SASL_USERNAME"}
    ) - by_key_of_a_judge - of_no_pod


@every
def test_whatever_is_referred_to_is_there(name: str) -> None:
    names = {
        kind: {each["metadata"]["name"] for each in of(name, kind)}
        for kind in ("ConfigMap", "Service", "ServiceAccount")
    }
    for workload, pod in pods(name):
        assert pod["serviceAccountName"] in names["ServiceAccount"]
        assert workload["spec"].get("serviceName") in {None, *names["Service"]}
        for container in pod["containers"]:
            refs = [each["configMapRef"]["name"] for each in container["envFrom"] if "configMapRef" in each]
            assert refs == ["traceweir-settings"]
            assert set(refs) <= names["ConfigMap"]
            assert {each["name"] for each in container["volumeMounts"]} <= {each["name"] for each in pod["volumes"]} | {
                each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", [])
            }


@every
def test_a_selector_finds_the_pods_of_one_workload(name: str) -> None:
    workloads = {each["metadata"]["name"]: each for each in manifests(name) if "template" in each.get("spec", {})}
    labels = {name: each["spec"]["template"]["metadata"]["labels"] for name, each in workloads.items()}
    selecting = [each for each in manifests(name) if each["kind"] in ("Service", "PodDisruptionBudget", "StatefulSet")]
    assert len(selecting) >= 3
    for each in selecting:
        selector = each["spec"]["selector"] if each["kind"] == "Service" else each["spec"]["selector"]["matchLabels"]
        assert [name for name, has in labels.items() if selector.items() <= has.items()] == [each["metadata"]["name"]]


def test_the_kubectl_commands_of_the_runbooks_name_what_the_base_has() -> None:
    pages = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("alerts.md", "operations.md"))
    commands = [line for block in blocks(pages, "bash") for line in block.splitlines() if line.startswith("kubectl ")]
    (workload, _, _) = workers("base")[0]
    name, labels = workload["metadata"]["name"], workload["spec"]["template"]["metadata"]["labels"]
    selectors = {selector for command in commands for selector in re.findall(r" -l (\S+)", command)}
    assert selectors == {f"app.kubernetes.io/name={labels['app.kubernetes.io/name']}"}
    assert {pod for command in commands for pod in re.findall(r"logs (\S+)", command)} == {f"{name}-0"}
    assert {each for command in commands for each in re.findall(r"scale statefulset (\S+)", command)} == {name}


def test_the_kafka_for_trials_is_that_of_compose_and_where_the_settings_say() -> None:
    (kafka,) = of("overlays/dev", "Deployment")
    (service,) = [each for each in of("overlays/dev", "Service") if each["metadata"]["name"] == "kafka"]
    (container,) = kafka["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    server = f"kafka:{service['spec']['ports'][0]['port']}"
    assert container["image"] == COMPOSE["kafka"]["image"]
    assert configured("overlays/dev")["TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS"] == server
    assert environment["KAFKA_ADVERTISED_LISTENERS"] == f"INSIDE://{server}"
    assert environment.keys() <= COMPOSE["kafka"]["environment"].keys()
