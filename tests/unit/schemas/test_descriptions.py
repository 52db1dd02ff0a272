"""Every property in the published JSON Schemas says what it means, and has no default that it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from traceweir.schemas.export import DOCUMENTS, exported

# The schemas take a second.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def schemas() -> dict[str, str]:
    """Returns the text of each schema file by its name."""
    return dict(exported())


def properties(schema: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yields all properties at any depth, each with its place in the document."""
    if isinstance(schema, list):
        for item in schema:
            yield from properties(item, place)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties":
                yield from ((f"{place}.{name}", each) for name, each in value.items())
            if key not in ("default", "const", "enum"):
                yield from properties(value, f"{place}.{key}" if key != "properties" else place)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_property_has_a_description(name: str, schemas: dict[str, str]) -> None:
    found = list(properties(json.loads(schemas[f"{name}.schema.json"])))
    assert found
    assert [place for place, each in found if not str(each.get("description", "")).strip().endswith((".", ":"))] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_default_is_valid(name: str, schemas: dict[str, str]) -> None:
    """A program that fills in defaults must not make a valid document invalid."""
    schema = json.loads(schemas[f"{name}.schema.json"])
    refused = [
        place
        for place, each in properties(schema)
        if "default" in each
        and not jsonschema.Draft202012Validator({"$defs": schema.get("$defs", {}), **each}).is_valid(each["default"])
    ]
    assert refused == []


def test_a_description_is_the_text_below_the_field(schemas: dict[str, str]) -> None:
    schema = json.loads(schemas["InvocationEvent.schema.json"])
    assert schema["$defs"]["SessionEnded"]["properties"]["occurred_at"] == {
        "description": "When the event occurred, as a date-time with its zone; orders the events of a session.",
        "format": "date-time",
        "title": "Occurred At",
        "type": "string",
    }
