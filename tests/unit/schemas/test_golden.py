"""Tests that this version reads the documents of version 1.0 and writes them back unchanged."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.paths import ROOT

from traceweir.schemas.export import DOCUMENTS, IN_SNAKE_CASE
from traceweir.scorers import read_plan

GOLDEN = ROOT / "tests" / "golden" / "1.0"
FILES = sorted(GOLDEN.glob("*.json"))


def adapter(path: Path) -> Any:
    return DOCUMENTS[path.name.split(".")[0]]


def in_snake_case(document: Any) -> Any:
    """Returns the document with every key in snake_case, as Google ADK writes its files."""
    if isinstance(document, dict):
        return {
            re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower(): in_snake_case(value) for key, value in document.items()
        }
    return [in_snake_case(item) for item in document] if isinstance(document, list) else document


def test_every_document_has_a_golden_file_and_every_event_type_one_of_its_own() -> None:
    types = DOCUMENTS["InvocationEvent"].json_schema()["discriminator"]["mapping"].keys()
    named = {path.stem for path in FILES}
    missing = {*DOCUMENTS} - {name.split(".")[0] for name in named}
    missing |= {f"InvocationEvent.{kind}" for kind in types} - named
    assert missing == set(), (
        f"add to {GOLDEN.relative_to(ROOT)}: {', '.join(f'{name}.json' for name in sorted(missing))}"
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_golden_file_has_the_name_of_its_document_and_its_event_type(path: Path) -> None:
    document, _, rest = path.stem.partition(".")
    assert document in DOCUMENTS
    if document == "InvocationEvent":
        assert f"{rest}.".startswith(f"{json.loads(path.read_text('utf-8'))['type']}.")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_document_is_read_and_written_back_unchanged(path: Path) -> None:
    text = path.read_text("utf-8")
    document = adapter(path).validate_json(text)
    by_alias = path.stem not in IN_SNAKE_CASE
    assert json.loads(adapter(path).dump_json(document, by_alias=by_alias, exclude_unset=True)) == json.loads(text)


@pytest.mark.parametrize("path", [path for path in FILES if path.stem != "EvalConfig"], ids=lambda path: path.stem)
def test_a_key_of_a_later_version_is_ignored(path: Path) -> None:
    document = json.loads(path.read_text("utf-8"))
    later = json.dumps(document | {"a_later_key": 1})
    assert adapter(path).validate_json(later) == adapter(path).validate_json(json.dumps(document))


GOOGLES = [path for path in FILES if path.name.startswith(("InvocationEvent.", "Reference."))]


@pytest.mark.parametrize("path", GOOGLES, ids=lambda path: path.stem)
def test_googles_spellings_mean_the_same(path: Path) -> None:
    document = json.loads(path.read_text("utf-8"))
    assert adapter(path).validate_json(json.dumps(in_snake_case(document))) == adapter(path).validate_json(
        json.dumps(document)
    )


def test_the_config_makes_a_plan() -> None:
    assert len(read_plan((GOLDEN / "EvalConfig.json").read_bytes()).metrics) == 3
