"""`traceweir shadow` refuses options that cannot be used, before it asks Kafka."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command_line import Run


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--name", "a.b"), "cannot name a shadow"),
        (("--name", "v2", "--sample", "0"), "is not a share of sessions"),
        (("--name", "v2", "--budget", "5eur"), "is not an amount"),
        (("--name", "v2", "--from", "yesterday"), "is not a time"),
        (("--name", "v2", "--from", "-1d", "--to", "-7d"), "the range is empty"),
        (("--name", "v2", "--stop", "--drop"), "excludes --drop"),
        (("--name", "v2", "--drop", "--sample", "0.5", "--yes"), "excludes --sample, --yes"),
        (("--name", "v2", "--config", "missing.json"), "cannot be read"),
    ],
)
def test_an_option_that_cannot_be_used_ends_the_command_with_2(
    run: Run, options: tuple[str, ...], message: str
) -> None:
    ended = run("shadow", *options)
    assert ended.code == 2
    assert message in " ".join(ended.err.split())


def test_metrics_that_do_not_exist_end_the_command_with_2(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "v2.json"
    config.write_text('{"criteria": {"no_such_metric": 1.0}}')
    ended = run("shadow", "--name", "v2", "--config", str(config))
    assert (ended.code, "no_such_metric" in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("package", "config", "extra"),
    [
        ("litellm", {"criteria": {"safety_v1": 0.5}}, "judge"),
        ("spacy", {"criteria": {}, "gate": {"presidio": {"model": "en_core_web_sm"}}}, "presidio"),
        ("sentence_transformers", {"criteria": {}}, "embeddings"),
    ],
)
def test_a_missing_package_is_named_before_kafka_is_asked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, config: dict[str, Any], extra: str
) -> None:
    (tmp_path / "v2.json").write_text(json.dumps(config))
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == package else find(name, *more))
    if extra == "embeddings":
        monkeypatch.setenv("TRACEWEIR_EMBEDDER", "some/model")
    ended = run("shadow", "--name", "v2", "--config", str(tmp_path / "v2.json"))
    assert (ended.code, f"pip install '.[{extra}]'" in ended.err, "Kafka" in ended.err) == (1, True, False)
