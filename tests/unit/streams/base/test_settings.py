"""Tests the settings: defaults, ranges, contradictions, secrets, and the options for Kafka clients."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from traceweir.schemas.export import texts_below_fields
from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.settings import Settings, load_settings
from traceweir.streams.worker.kafka.client_options import (
    aiokafka_options,
    confluent_options,
    consumer_options,
    producer_options,
    token_source,
)

SASL = {
    "TRACEWEIR_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "TRACEWEIR_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
    "TRACEWEIR_KAFKA_SASL_USERNAME": "worker",
    "TRACEWEIR_KAFKA_SASL_PASSWORD": "hunter2-hunter2",
}


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("TRACEWEIR_")]:
        monkeypatch.delenv(name)


BY_TOKEN = {
    "KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
    "KAFKA_SASL_MECHANISM": "OAUTHBEARER",
    "KAFKA_OAUTH_TOKEN_ENDPOINT": "https://login.example/token",
    "KAFKA_OAUTH_CLIENT_ID": "worker",
    "KAFKA_OAUTH_CLIENT_SECRET": "hunter2-hunter2",
}


def without(name: str) -> dict[str, str]:
    return {other: value for other, value in BY_TOKEN.items() if other != name}


def load(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> Settings:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return load_settings()


def refusal(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> str:
    with pytest.raises(InvalidSettingsError) as caught:
        load(monkeypatch, variables)
    return str(caught.value)


def test_the_defaults_are_for_a_broker_on_this_machine() -> None:
    settings = load_settings()

    assert settings.topic_prefix == "traceweir."
    assert (settings.partitions, settings.replication_factor) == (4, 1)
    assert (settings.idle_gap_s, settings.close_linger_s, settings.guard_s) == (300, 2, 3600)
    assert (settings.segment_max_events, settings.segment_max_bytes, settings.max_future_s) == (1000, 800_000, 300)
    assert (settings.delivery, settings.embedder, settings.checkpoint_interval_s) == ("auto", "auto", 0.02)
    assert confluent_options(settings) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "PLAINTEXT",
        "allow.auto.create.topics": False,
    }
    assert aiokafka_options(settings) == {"bootstrap_servers": ["127.0.0.1:9092"], "security_protocol": "PLAINTEXT"}


def test_consumers_have_the_rack_and_producers_the_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = load(monkeypatch, {})
    assert consumer_options(plain) == aiokafka_options(plain) | {"client_rack": None}
    assert producer_options(plain) == aiokafka_options(plain) | {"compression_type": None}

    variables = {"TRACEWEIR_KAFKA_COMPRESSION": "zstd", "TRACEWEIR_KAFKA_CLIENT_RACK": "zone-b"}
    chosen = load(monkeypatch, variables)
    assert consumer_options(chosen) == aiokafka_options(plain) | {"client_rack": "zone-b"}
    assert producer_options(chosen) == aiokafka_options(plain) | {"compression_type": "zstd"}


def test_a_variable_sets_the_field_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load(monkeypatch, {"TRACEWEIR_PARTITIONS": "8"}).partitions == 8


def test_every_field_has_a_description() -> None:
    assert set(Settings.model_fields) == set(texts_below_fields(Settings))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("PARTITIONS", "0"),
        ("REPLICATION_FACTOR", "0"),
        ("CHECKPOINT_INTERVAL_S", "0"),
        ("CHECKPOINT_INTERVAL_S", "60"),
        ("IDLE_GAP_S", "0"),
        ("IDLE_GAP_S", "inf"),
        ("CLOSE_LINGER_S", "-1"),
        ("GUARD_S", "nan"),
        ("SEGMENT_MAX_EVENTS", "0"),
        ("SEGMENT_MAX_BYTES", "2000000"),
        ("SCORE_CONCURRENCY", "0"),
        ("SCORE_WINDOW", "0"),
        ("SCORE_TIMEOUT_S", "soon"),
        ("SESSION_TIMEOUT_S", "3600"),
        ("DELIVERY", "at_most_once"),
        ("EMBEDDER", ""),
        ("TOPIC_PREFIX", "acme"),
        ("KAFKA_OAUTH_TOKEN_ENDPOINT", "https://user:hunter2@login.example/token"),
        ("KAFKA_OAUTH_TOKEN_ENDPOINT", "https://login.example/token?secret=hunter2"),
        ("KAFKA_OAUTH_CLIENT_SECRET", ""),
        ("KAFKA_OAUTH_PROVIDER", "two words"),
        ("TOPIC_PREFIX", "a b."),
        ("GROUP_INSTANCE_ID", ""),
        ("KAFKA_BOOTSTRAP_SERVERS", ""),
        ("KAFKA_BOOTSTRAP_SERVERS", "broker"),
        ("KAFKA_BOOTSTRAP_SERVERS", "a:9092,b:99999"),
        ("KAFKA_SECURITY_PROTOCOL", "TLS"),
        ("KAFKA_SSL_CAFILE", "/no/such/file.pem"),
    ],
)
def test_a_value_out_of_range_is_rejected_with_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, field: str, value: str
) -> None:
    assert refusal(monkeypatch, {f"TRACEWEIR_{field}": value}).startswith(f"TRACEWEIR_{field}: ")


def test_one_message_contains_all_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, {"TRACEWEIR_PARTITIONS": "0", "TRACEWEIR_SCORE_WINDOW": "x"})

    assert [line.split(":")[0] for line in message.splitlines()] == ["TRACEWEIR_PARTITIONS", "TRACEWEIR_SCORE_WINDOW"]


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"KAFKA_SECURITY_PROTOCOL": "SASL_SSL"}, "requires both TRACEWEIR_KAFKA_SASL_USERNAME"),
        ({"KAFKA_SASL_USERNAME": "worker"}, "TRACEWEIR_KAFKA_SECURITY_PROTOCOL=PLAINTEXT"),
        (BY_TOKEN | {"KAFKA_SASL_USERNAME": "worker"}, "not used with TRACEWEIR_KAFKA_SASL_MECHANISM=OAUTHBEARER"),
        (without("KAFKA_OAUTH_TOKEN_ENDPOINT"), "requires TRACEWEIR_KAFKA_OAUTH_TOKEN_ENDPOINT"),
        (without("KAFKA_OAUTH_CLIENT_ID"), "requires TRACEWEIR_KAFKA_OAUTH_CLIENT_ID"),
        (without("KAFKA_OAUTH_CLIENT_SECRET"), "requires either TRACEWEIR_KAFKA_OAUTH_CLIENT_SECRET or"),
        (BY_TOKEN | {"KAFKA_OAUTH_CLIENT_SECRET_FILE": __file__}, "TRACEWEIR_KAFKA_OAUTH_CLIENT_SECRET_FILE; set one"),
        (
            BY_TOKEN | {"KAFKA_OAUTH_PROVIDER": "msk_iam"},
            "KAFKA_OAUTH_CLIENT_ID is not used with TRACEWEIR_KAFKA_OAUTH_PROVIDER",
        ),
        (without("KAFKA_SASL_MECHANISM"), "KAFKA_OAUTH_TOKEN_ENDPOINT is used only with a SASL protocol"),
        (without("KAFKA_SECURITY_PROTOCOL"), "KAFKA_OAUTH_CLIENT_SECRET is used only with a SASL protocol"),
        ({"KAFKA_OAUTH_PROVIDER": "msk_iam"}, "KAFKA_OAUTH_PROVIDER is used only with a SASL protocol"),
        ({"KAFKA_SSL_CAFILE": __file__}, "TLS files are not used"),
        ({"KAFKA_SECURITY_PROTOCOL": "SSL", "KAFKA_SSL_KEYFILE": __file__}, "go together"),
        ({"HEARTBEAT_INTERVAL_S": "6"}, "TRACEWEIR_HEARTBEAT_INTERVAL_S=6 is more than half"),
        (
            {"STORE_RESULTS_DAYS": "401"},
            "TRACEWEIR_STORE_RESULTS_DAYS=401 is more than TRACEWEIR_STORE_FIGURES_DAYS=400",
        ),
        (
            {"OTLP_SPANS_TOPIC": "otlp", "OTLP_LOGS_TOPIC": "otlp"},
            "topic 'otlp' has two tasks, that of TRACEWEIR_OTLP_SPANS_TOPIC and that of TRACEWEIR_OTLP_LOGS_TOPIC",
        ),
        ({"OTLP_SPANS_TOPIC": "traceweir.spans"}, "topic 'traceweir.spans' has two tasks"),
        ({"TOPIC_PREFIX": "otlp_", "OTLP_LOGS_TOPIC": "otlp_traces"}, "topic 'otlp_traces' has two tasks"),
        (
            {"TRANSACTION_TIMEOUT_S": "120"},
            "TRACEWEIR_TRANSACTION_TIMEOUT_S=120 is not less than TRACEWEIR_STUCK_AFTER_S=120",
        ),
    ],
)
def test_contradictory_settings_are_rejected(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: str
) -> None:
    assert named in refusal(monkeypatch, {f"TRACEWEIR_{name}": value for name, value in variables.items()})


def test_the_text_of_the_settings_does_not_contain_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, SASL)

    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"


def test_error_messages_do_not_contain_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"TRACEWEIR_KAFKA_SASL_PASSWORD": "hunter2-hunter2"}
    assert "hunter2" not in refusal(monkeypatch, variables)

    with pytest.raises(ValueError, match="are not used") as direct:
        Settings()
    assert "hunter2" not in str(direct.value)


def test_user_and_password_are_options_of_both_kafka_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load(monkeypatch, SASL | {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": "a:1, b:2"})

    assert confluent_options(settings) == {
        "bootstrap.servers": "a:1, b:2",
        "security.protocol": "SASL_SSL",
        "allow.auto.create.topics": False,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "worker",
        "sasl.password": "hunter2-hunter2",
    }
    options = aiokafka_options(settings)
    assert isinstance(options.pop("ssl_context"), ssl.SSLContext)
    assert options == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "worker",
        "sasl_plain_password": "hunter2-hunter2",
    }


def test_equal_settings_have_the_same_source_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {f"TRACEWEIR_{name}": value for name, value in BY_TOKEN.items()}
    settings = load(monkeypatch, variables)

    assert token_source(settings) is token_source(load_settings())
    assert "hunter2" not in f"{settings!r} {settings.model_dump_json()} {aiokafka_options(settings)}"
    other = load(monkeypatch, {"TRACEWEIR_KAFKA_OAUTH_SCOPE": "kafka"})
    assert token_source(other) is not token_source(settings)


def test_tls_verifies_the_brokers_certificate_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    context = aiokafka_options(load(monkeypatch, {"TRACEWEIR_KAFKA_SECURITY_PROTOCOL": "SSL"}))["ssl_context"]

    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


def test_paths_of_tls_files_are_options_of_librdkafka(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.pem" for name in ("CAFILE", "CERTFILE", "KEYFILE")}
    for path in files.values():
        path.touch()
    variables = {f"TRACEWEIR_KAFKA_SSL_{name}": str(path) for name, path in files.items()}

    options = confluent_options(load(monkeypatch, {"TRACEWEIR_KAFKA_SECURITY_PROTOCOL": "SSL"} | variables))

    assert options["ssl.ca.location"] == str(files["CAFILE"])
    assert options["ssl.certificate.location"] == str(files["CERTFILE"])
    assert options["ssl.key.location"] == str(files["KEYFILE"])


@pytest.mark.parametrize(
    "servers", ["alice:hunter2@kafka:9092", "kafka:9092,SASL_SSL://alice:hunter2@kafka", "alice:hunter2,x@kafka:9092"]
)
def test_a_password_in_the_bootstrap_servers_is_rejected_and_not_shown(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", servers)
    with pytest.raises(InvalidSettingsError) as caught:
        load_settings()
    message = str(caught.value)
    assert message.startswith("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS: ")
    assert "TRACEWEIR_KAFKA_SASL_PASSWORD" in message
    assert not [secret for secret in ("hunter2", "alice") if secret in message]


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_the_level_of_the_log_is_a_setting(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEWEIR_LOG_LEVEL", level)
    assert load_settings().log_level == level


def test_an_unknown_level_of_the_log_is_refused_with_the_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEWEIR_LOG_LEVEL", "loud")
    with pytest.raises(
        InvalidSettingsError, match="TRACEWEIR_LOG_LEVEL: Input should be 'debug', 'info', 'warning' or"
    ):
        load_settings()


@pytest.mark.parametrize(
    ("name", "beginning", "character"),
    [
        ("KAFKA_BOOTSTRAP_SERVERS", "kafka:", "9"),
        ("STATE_DIR", "state/", "x"),
        ("WEB_HOST", "", "x"),
        ("JUDGE_API_BASE", "http://", "x"),
        ("JUDGE_API_KEY", "", "x"),
        ("JUDGE_CACHE", "cache/", "x"),
        ("EMBEDDER", "", "x"),
    ],
)
def test_a_value_of_70000_characters_is_reported_by_its_variable_and_is_not_shown(
    name: str, beginning: str, character: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = refusal(monkeypatch, {f"TRACEWEIR_{name}": beginning.ljust(70_000, character)})
    assert said.startswith(f"TRACEWEIR_{name}: the value (not shown) has 70000 characters, and at most ")
    assert len(said) < 250


def test_an_overlong_credential_is_reported_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(monkeypatch, SASL | {"TRACEWEIR_KAFKA_SASL_PASSWORD": "secret" * 10_000})
    assert said.startswith("TRACEWEIR_KAFKA_SASL_PASSWORD: the value (not shown) has 60000 characters")
    assert "secret" not in said


def test_a_long_address_that_is_no_address_leaves_room_for_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(monkeypatch, {"TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS": "x" * 3_000})
    assert said.endswith("…' is not host:port; for example 127.0.0.1:9092")
    assert len(said) < 250


def test_a_key_for_user_ids_is_refused_if_it_is_short_or_not_used_and_never_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = refusal(monkeypatch, {"TRACEWEIR_USER_ID_KEY": "hunter2"})
    assert "TRACEWEIR_USER_ID_KEY" in said
    assert "hunter2" not in said
    said = refusal(monkeypatch, {"TRACEWEIR_USER_ID_KEY": "hunter2" * 3, "TRACEWEIR_USER_IDS": "plain"})
    assert "TRACEWEIR_USER_ID_KEY is not used with TRACEWEIR_USER_IDS=plain" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        *(
            ("URL", url, "is no address")
            for url in ("ftp://a/s3cr3t", "s3cr3t", "http://:80/s3cr3t", "http://a:99999/s3cr3t")
        ),
        ("URL", "https://a/s3cr3t\n", "is no address"),
        *(("SECRET", secret, "24 to 64 bytes") for secret in ("s3cr3t==", "c2VjcmV0" * 12, "c2VjcmV0" * 3 + "!", "")),
        ("SECRET", " ".join(["c2VjcmV0" * 4] * 3), "two with a space"),
    ],
)
def test_an_address_or_a_secret_of_a_webhook_that_cannot_be_used_is_refused_and_not_shown(
    name: str, value: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refusal(monkeypatch, {f"TRACEWEIR_WEBHOOK_{name}": value})
    assert f"TRACEWEIR_WEBHOOK_{name}" in message
    assert rule in message
    assert not value or value.strip() not in message


def test_a_webhook_takes_one_secret_or_two(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "c2VjcmV0" * 4
    for value in (secret, f"whsec_{secret}", f"{secret} whsec_{secret}"):
        found = load(monkeypatch, {"TRACEWEIR_WEBHOOK_SECRET": value}).webhook_secret
        assert found is not None
        assert found.get_secret_value() == value
