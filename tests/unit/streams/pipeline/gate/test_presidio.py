"""Tests the recogniser of names: its errors at start, and Presidio with a small model that knows two names.

The tests with the mark `presidio` run where the [presidio] extra is installed; `make test-presidio` installs it.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import Run

from traceweir.schemas.config import PresidioConfig
from traceweir.scorers.redaction.entities import EntityFinder, NotSearchedError
from traceweir.scorers.redaction.redaction import redact_text
from traceweir.streams.pipeline.gate.presidio import PresidioUnavailableError, load_entities

Load = Callable[..., EntityFinder]


def test_without_the_section_nothing_is_loaded() -> None:
    assert load_entities(None) is None


def test_without_the_extra_the_error_names_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    config, sessions = tmp_path / "eval.json", tmp_path / "sessions.jsonl"
    config.write_text(json.dumps({"gate": {"presidio": {"model": "en_core_web_sm"}}}))
    sessions.write_text("")

    ended = run("score", str(sessions), "--config", str(config))

    assert (ended.code, ended.out) == (1, "")
    assert "gate.presidio needs presidio_analyzer" in ended.err
    assert "pip install '.[presidio]'" in ended.err


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Returns a function that loads a model with two names; a connection to the network fails the test."""
    if importlib.util.find_spec("presidio_analyzer") is None or importlib.util.find_spec("spacy") is None:
        pytest.skip("Presidio is not installed; `make test-presidio` installs it and runs this")

    def refuse(*arguments: object, **options: object) -> Any:
        raise AssertionError("opens a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    logger = logging.getLogger("presidio-analyzer")  # restored, because loading changes it for the process
    monkeypatch.setattr(logger, "handlers", logger.handlers)
    monkeypatch.setattr(logger, "propagate", logger.propagate)
    import spacy

    model = spacy.blank("en")
    names = [("PERSON", "Kim Minsu"), ("GPE", "Seoul"), ("SHIP", "Aurora"), ("MONEY", "ten dollars")]
    names.append(("PERSON", "REDACTED:email] Kim Minsu"))  # as a model can take a part of a token for a part of a name
    model.add_pipe("entity_ruler").add_patterns([{"label": label, "pattern": name} for label, name in names])
    model.to_disk(tmp_path / "names")

    def loaded(**options: Any) -> EntityFinder:
        finder = load_entities(PresidioConfig(**{"model": str(tmp_path / "names")} | options))
        assert finder is not None
        return finder

    return loaded


def redacted(finder: EntityFinder, text: str) -> str:
    return redact_text(text, find_entities=finder.find)


@pytest.mark.slow
@pytest.mark.presidio
def test_names_of_the_model_are_redacted_under_presidios_names(load: Load) -> None:
    finder = load()
    assert redacted(finder, "Kim Minsu flies to Seoul on the Aurora for ten dollars, kim@example.com.") == (
        "[REDACTED:person] flies to [REDACTED:location] on the Aurora for ten dollars, [REDACTED:email]."
    )
    assert redacted(finder, "") == ""
    assert redacted(finder, " ... ") == " ... "


@pytest.mark.presidio
def test_a_label_of_an_own_model_and_an_identifier_of_presidio_can_be_selected(load: Load) -> None:
    finder = load(entities=["SHIP", "UK_NHS"])
    assert redacted(finder, "Kim Minsu on the Aurora, NHS number 9434765919") == (
        "Kim Minsu on the [REDACTED:ship], NHS number [REDACTED:uk_nhs]"
    )


@pytest.mark.slow
@pytest.mark.presidio
def test_a_score_below_the_threshold_does_not_count(load: Load) -> None:
    assert redacted(load(score_threshold=0.85), "Seoul") == "[REDACTED:location]"
    assert redacted(load(score_threshold=0.86), "Seoul") == "Seoul"


@pytest.mark.presidio
def test_existing_tokens_are_no_text_for_the_model(load: Load) -> None:
    text = "[REDACTED:email] Kim Minsu [REDACTED:seoul]"
    assert redacted(load(), text) == "[REDACTED:email] [REDACTED:person] [REDACTED:seoul]"


@pytest.mark.presidio
def test_every_piece_of_a_long_text_is_searched(load: Load) -> None:
    text = "Then Kim Minsu saw Seoul again. " * 600
    assert redacted(load(), text) == "Then [REDACTED:person] saw [REDACTED:location] again. " * 600


@pytest.mark.slow
@pytest.mark.presidio
def test_recognising_all_that_presidio_knows_opens_no_connection(load: Load) -> None:
    with pytest.raises(PresidioUnavailableError) as refused:
        load(entities=["NO_SUCH_KIND"])
    known = str(refused.value).split("it knows ")[1].split(", ")
    text = "Mail kim@example.com or see https://example.co.uk, card 4111 1111 1111 1111, IBAN DE89370400440532013000."
    assert redacted(load(entities=known), text) != text
    assert "PERSON" in known
    assert "EMAIL_ADDRESS" not in known


@pytest.mark.presidio
def test_an_entity_that_nothing_recognises_is_an_error_with_those_that_are_known(load: Load) -> None:
    with pytest.raises(PresidioUnavailableError, match=r"does not know ORGANIZATION; it knows .*LOCATION.*PERSON"):
        load(entities=["PERSON", "ORGANIZATION"])


@pytest.mark.presidio
def test_an_installed_model_is_loaded_without_importing_its_package(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "installed" / "en_two_names"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('is imported')")
    (tmp_path / "names").rename(package / "en_two_names-0.0.0")
    monkeypatch.syspath_prepend(package.parent)
    assert redacted(load(model="en_two_names"), "To Seoul") == "To [REDACTED:location]"


@pytest.mark.presidio
@pytest.mark.parametrize("model", ["no_such_model", "no/such/folder", "json", "x" * 1_000])
def test_a_missing_model_is_an_error_with_the_command_and_not_a_download(model: str, load: Load) -> None:
    name = model if model.isidentifier() else "en_core_web_sm"
    with pytest.raises(PresidioUnavailableError, match=rf"'{model}' is neither .*`python -m spacy download {name}`"):
        load(model=model)


@pytest.mark.presidio
def test_a_model_that_does_not_load_is_an_error_with_the_reason(load: Load, tmp_path: Path) -> None:
    (tmp_path / "names" / "config.cfg").write_text("nothing")
    with pytest.raises(PresidioUnavailableError, match="could not be loaded: "):
        load()


@pytest.mark.presidio
def test_a_pattern_that_takes_too_long_refuses_the_text_and_logs_none_of_it(
    load: Load, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    finder = load(entities=["UK_NHS"])
    monkeypatch.setattr("presidio_analyzer.pattern_recognizer.REGEX_TIMEOUT_SECONDS", 1e-9)
    with caplog.at_level(logging.DEBUG), pytest.raises(NotSearchedError, match="presidio_failed"):
        finder.find("943 476 5919 " * 500)
    assert "943" not in caplog.text


@pytest.mark.presidio
@pytest.mark.parametrize("program", ["disables warnings", "disables other loggers", "replaces the handlers"])
def test_a_program_that_configures_logging_does_not_open_the_gate(
    load: Load, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    finder = load(entities=["UK_NHS"])
    monkeypatch.setattr("presidio_analyzer.pattern_recognizer.REGEX_TIMEOUT_SECONDS", 1e-9)
    logger = logging.getLogger("presidio-analyzer")
    if program == "disables warnings":
        monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    elif program == "disables other loggers":
        monkeypatch.setattr(logger, "disabled", True)
    else:
        monkeypatch.setattr(logger, "handlers", [logging.NullHandler()])
    with pytest.raises(NotSearchedError, match="presidio_failed"):
        finder.find("943 476 5919 " * 500)
