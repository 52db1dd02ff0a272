"""`traceweir config` on the embedded broker: a challenger is pushed beside a champion, promoted, and ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import certificate
from tests.support.command_line import Ended, Run
from tests.support.shadows import make_definition

from traceweir.schemas.base import JsonObject
from traceweir.schemas.certificate import Certificate
from traceweir.scorers.evaluation.plan import read_plan
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.certificate_standing import with_certificates
from traceweir.streams.cli.config import push as config_push
from traceweir.streams.lab.shadow.challenger_name import require_usable_name
from traceweir.streams.lab.shadow.definition import Definition
from traceweir.streams.lab.shadow.log import forget, send, write_definition, write_stop
from traceweir.streams.lab.shadow.names import ShadowNames
from traceweir.streams.worker.kafka.embedded_broker import EmbeddedBroker
from traceweir.streams.worker.kafka.topic_admin import create_named, create_topics, existing_topics

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("restored_fetcher"), pytest.mark.xdist_group("config")]

ONE = '{"criteria": {"response_match_score": 0.5}}'
TWO = '{"criteria": {"response_match_score": 0.8}}'
THREE = '{"criteria": {"response_match_score": 0.9}}'
Config = Callable[..., Ended]


@pytest.fixture
def settings(embedded_broker: EmbeddedBroker) -> Settings:
    found = Settings(kafka_bootstrap_servers=embedded_broker.bootstrap_servers)
    create_topics(found)
    return found


@pytest.fixture
def config(settings: Settings, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Config:
    """Returns a function that runs `traceweir config` on that broker, in a folder with two configs."""
    monkeypatch.setenv("TRACEWEIR_KAFKA_BOOTSTRAP_SERVERS", settings.kafka_bootstrap_servers)
    monkeypatch.chdir(tmp_path)
    for name, text in (("one.json", ONE), ("two.json", TWO)):
        (tmp_path / name).write_text(text)
    return lambda *arguments: run("config", *arguments)


def test_a_challenger_is_pushed_shown_and_promoted(config: Config, settings: Settings) -> None:
    config("push", "one.json", "--app", "travel")
    pushed = config("push", "two.json", "--challenger", "v2", "--sample", "0.1", "--budget", "5usd", "--app", "travel")
    assert pushed.code == 0, pushed.err
    lines = pushed.out.splitlines()
    assert "challenger v2 scores 0.1 of the sessions beside the champion" in lines
    assert lines[-1] == f"pushed version 2 for app travel, digest {read_plan(ONE).digest}"
    assert settings.topics.shadow_results("v2") in existing_topics(settings)
    section = {"name": "v2", "sample": 0.1, "config": json.loads(TWO), "budget": 5.0}
    assert json.loads(config("show", "--app", "travel").out) == json.loads(ONE) | {"challenger": section}
    assert ", challenger v2, " in config("show").out
    rows = [json.loads(line) for line in config("history", "--app", "travel", "--json").out.splitlines()]
    assert [row["challenger"] for row in rows] == [None, {"name": "v2", "sample": 0.1, "budget": 5.0}]
    assert json.loads(config("show", "--digest", read_plan(TWO).digest).out) == json.loads(TWO)

    promoted = config("promote", "v2", "--app", "travel")
    assert promoted.code == 0
    assert "~ criteria.response_match_score: 0.5 -> 0.8" in promoted.out
    assert "challenger v2 ends" in promoted.out
    assert json.loads(config("show", "--app", "travel").out) == json.loads(TWO)


def test_promoting_keeps_the_certificates_that_still_fit_and_names_those_that_end(config: Config) -> None:
    document: JsonObject = {"criteria": {"safety_v1": 0.5, "hallucinations_v1": 0.8}}
    measured = {each.name: each for each in read_plan(document).metrics}

    def certified(name: str, **changes: Any) -> Certificate:
        metric = measured[name]
        judge = "gemini/gemini-2.5-flash"
        fields = {"criterion": name, "metric_digest": metric.digest, "judge": judge, "threshold": metric.threshold}
        return certificate(**fields | changes)

    kept = certified("safety_v1")
    champion = [kept, certified("hallucinations_v1"), certified("safety_v1", judge="openai/former")]
    own = certified("safety_v1", judge=None)
    challenger: JsonObject = {"criteria": {"safety_v1": 0.5, "hallucinations_v1": 0.9}}
    Path("champion.json").write_text(json.dumps(with_certificates(document, champion)))
    Path("challenger.json").write_text(json.dumps(with_certificates(challenger, [own])))
    config("push", "champion.json")
    assert config("push", "challenger.json", "--challenger", "v2", "--budget", "1usd").code == 0

    promoted = config("promote", "v2")
    assert promoted.code == 0, promoted.err
    assert "hallucinations_v1 by gemini/gemini-2.5-flash ends: the threshold is another one" in promoted.err
    assert "safety_v1 by openai/former ends: not in force: the config names gemini/gemini-2.5-flash" in promoted.err
    in_effect = read_plan(config("show", "--version", "3").out).gate.certificates
    assert [each.key for each in in_effect] == [own.key, kept.key]


def test_a_challenger_ends_by_a_withdrawal_and_by_a_push_without_it(config: Config) -> None:
    config("push", "one.json")
    config("push", "two.json", "--challenger", "v2")
    assert "challenger v2 ends" in config("withdraw", "--challenger").out
    rows = [json.loads(line) for line in config("history", "--json").out.splitlines()]
    assert [row["challenger"] and row["challenger"]["name"] for row in rows] == [None, "v2", None]
    config("push", "two.json", "--challenger", "v2")  # the same name and config continue
    assert "challenger v2 ends" in config("push", "one.json").out


def test_a_rollback_starts_no_challenger(config: Config) -> None:
    config("push", "one.json")
    config("push", "two.json", "--challenger", "v2")
    config("promote", "v2")
    assert json.loads(config("rollback", "--json").out)["pushed"]["digest"] == read_plan(ONE).digest
    rows = [json.loads(line) for line in config("history", "--json").out.splitlines()]
    assert [row["challenger"] and row["challenger"]["name"] for row in rows] == [None, "v2", None, None]


def test_a_rollback_after_a_challenger_has_ended_takes_an_earlier_config(config: Config) -> None:
    config("push", "one.json")
    config("push", "two.json")
    config("push", "one.json", "--challenger", "v2")
    config("withdraw", "--challenger")
    back = json.loads(config("rollback", "--json").out)
    assert (back["pushed"]["version"], back["pushed"]["comment"]) == (5, "rollback to version 1")
    assert json.loads(config("show", "--json", "--version", "5").out)["config"] == json.loads(ONE)


def test_a_rollback_without_another_config_changes_nothing(config: Config) -> None:
    config("push", "one.json")
    config("push", "two.json", "--challenger", "v2")
    config("withdraw", "--challenger")
    none = config("rollback")
    assert (none.code, none.out) == (1, "")
    assert "there is no version before version 3 for all apps that has another config" in none.err


def test_a_name_that_is_in_use_is_refused(config: Config, settings: Settings) -> None:
    config("push", "one.json")
    config("push", "one.json", "--app", "travel")
    config("push", "two.json", "--challenger", "v2")
    other = config("push", "two.json", "--challenger", "v2", "--app", "travel")
    assert (other.code, "the config for all apps has a challenger 'v2' already" in other.err) == (1, True)
    dry = config("push", "two.json", "--challenger", "v2", "--app", "travel", "--dry-run")
    assert (dry.code, dry.err) == (1, other.err)
    topic = settings.topics.shadow_results("v3")
    create_named(settings, {topic: "delete"}, {})
    send(settings, topic, [(0, b"s", b"{}")])
    for options in ((), ("--dry-run",)):
        used = config("push", "two.json", "--challenger", "v3", *options)
        assert (used.code, f"{topic!r} has scores of another config" in used.err) == (1, True)


def test_a_name_that_another_push_takes_meanwhile_is_refused(
    config: Config, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    config("push", "one.json")
    config("push", "one.json", "--app", "travel")
    prepare = require_usable_name

    def prepared_too_early(*arguments: Any) -> None:
        prepare(*arguments)
        monkeypatch.setattr(config_push, "require_usable_name", prepare)
        assert config("push", "two.json", "--challenger", "v2").code == 0

    monkeypatch.setattr(config_push, "require_usable_name", prepared_too_early)
    late = config("push", "two.json", "--challenger", "v2", "--app", "travel")
    assert (late.code, "the config for all apps has a challenger 'v2' already" in late.err) == (1, True)


def test_a_name_that_an_earlier_challenger_had_can_be_pushed_with_another_share(
    config: Config, settings: Settings
) -> None:
    config("push", "one.json")
    config("push", "two.json", "--challenger", "v2")
    config("withdraw", "--challenger")  # its topic is empty, as after `shadow --drop`, which this broker does not have
    config("push", "one.json", "--challenger", "v2")
    send(settings, settings.topics.shadow_results("v2"), [(0, b"s", b"{}")])
    again = config("push", "one.json", "--challenger", "v2", "--sample", "0.5")
    assert (again.code, again.err) == (0, "")
    earlier = config("push", "two.json", "--challenger", "v2")
    assert (earlier.code, "has scores of another config" in earlier.err) == (1, True)


def test_the_name_of_a_challenger_is_none_for_a_shadow(config: Config, run: Run) -> None:
    config("push", "one.json")
    config("push", "two.json", "--challenger", "v2")
    for arguments in (("--drop",), ("--config", "two.json", "--yes")):
        refused = run("shadow", "--name", "v2", *arguments)
        assert (refused.code, "'v2' is the challenger in the config for all apps" in refused.err) == (1, True)


def test_the_config_of_a_shadow_is_found_by_its_digest(config: Config, settings: Settings) -> None:
    digest = read_plan(TWO).digest
    config("push", "one.json")
    unknown = config("show", "--digest", digest)
    assert (unknown.code, "no digest starts with" in unknown.err) == (1, True)
    create_named(settings, {ShadowNames.of(settings, "v2").shadows: "compact"}, {})
    for name, text in (("v2", TWO), ("dropped", THREE), ("default", None)):
        write_definition(settings, definition(name, text))
    forget(settings, "dropped")
    write_stop(settings, "v2")

    shown = config("show", "--digest", digest[:12])
    assert (json.loads(shown.out), f"shadow v2, digest {digest[:12]}" in shown.err) == (json.loads(TWO), True)
    document = json.loads(config("show", "--digest", digest, "--json").out)
    assert (document["shadow"], document["digest"], document["config"]) == ("v2", digest, json.loads(TWO))
    assert "0.5 -> 0.8" in config("diff", "current", f"digest:{digest}").out
    assert config("show", "--digest", read_plan(THREE).digest).code == 1
    default = config("show", "--digest", read_plan(None).digest)
    assert (default.code, "shadow 'default', which was created without --config" in default.err) == (1, True)


def definition(name: str, text: str | None) -> Definition:
    return make_definition(name=name, config=text, config_digest=read_plan(text).digest)


def test_what_cannot_be_done_is_said(config: Config) -> None:
    none = config("push", "two.json", "--challenger", "v2")
    assert (none.code, "push the champion first" in none.err) == (1, True)
    config("push", "one.json")
    assert "has no challenger" in config("promote", "v2").err
    assert "has no challenger" in config("withdraw", "--challenger").err
    config("push", "two.json", "--challenger", "v2")
    wrong = config("promote", "v3")
    assert (wrong.code, "is 'v2', not 'v3': promote that one" in wrong.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--challenger", "a.b"), "cannot name a shadow"),
        (("--challenger", "v2", "--sample", "0"), "is not a share"),
        (("--challenger", "v2", "--budget", "much"), "is not an amount"),
        (("--sample", "0.5"), "needs --challenger"),
        (("--budget", "5"), "needs --challenger"),
    ],
)
def test_options_that_make_no_sense_are_refused(config: Config, arguments: tuple[str, ...], message: str) -> None:
    refused = config("push", "two.json", *arguments)
    assert (refused.code, message in " ".join(refused.err.split())) == (2, True)


def test_a_dry_run_creates_nothing(config: Config, settings: Settings) -> None:
    config("push", "one.json")
    assert "would push version 2" in config("push", "two.json", "--challenger", "dry", "--dry-run").out
    assert settings.topics.shadow_results("dry") not in existing_topics(settings)
