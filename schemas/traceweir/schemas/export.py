"""Exports the JSON Schemas of the documents on topics and in files.

`python -m traceweir.schemas.export` writes the schema files; `--check` compares them.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from traceweir.schemas.alert import Alert
from traceweir.schemas.candidate import Candidate
from traceweir.schemas.config import EvalConfig
from traceweir.schemas.eval_set import EvalSet
from traceweir.schemas.evaluation_row import EvaluationRow
from traceweir.schemas.events import EVENT
from traceweir.schemas.labels import Label
from traceweir.schemas.pushed_config import PushedConfig
from traceweir.schemas.reference import Reference
from traceweir.schemas.score import Score
from traceweir.schemas.session import Session
from traceweir.schemas.trace import ReasoningTrace

FOLDER = Path("schemas/json")
DOCUMENTS: dict[str, TypeAdapter[Any]] = {
    "ReasoningTrace": TypeAdapter(ReasoningTrace),
    "InvocationEvent": EVENT,
    "Reference": TypeAdapter(Reference),
    "Label": TypeAdapter(Label),
    "Alert": TypeAdapter(Alert),
    "Session": TypeAdapter(Session),
    "Candidate": TypeAdapter(Candidate),
    "Score": TypeAdapter(Score),
    "EvalConfig": TypeAdapter(EvalConfig),
    "PushedConfig": TypeAdapter(PushedConfig),
    "EvalSet": TypeAdapter(EvalSet),
    "EvaluationRow": TypeAdapter(EvaluationRow),
}
IN_SNAKE_CASE = {"EvalSet"}
"""Documents that Google ADK writes to files in snake_case."""


class _Described(GenerateJsonSchema):
    """Describes each property by the text below its field.

    pydantic can do so itself (`use_attribute_docstrings`), but then every import of a model parses its source.
    """

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """Returns the schema of a model with descriptions of its properties."""
        found = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        texts = texts_below_fields(model)
        for name, field in model.model_fields.items():
            for spelling in (name, field.alias):
                if spelling in found.get("properties", {}) and name in texts:
                    found["properties"][spelling].setdefault("description", texts[name])
        return found


def texts_below_fields(model: type[BaseModel]) -> dict[str, str]:
    """Returns the string below each field of a model and of its base classes, by the field's name."""
    texts: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not (issubclass(each, BaseModel) and each.__module__.startswith("traceweir.")):
            continue
        (definition,) = ast.parse(inspect.getsource(each)).body
        assert isinstance(definition, ast.ClassDef)  # noqa: S101  # the source of a class
        for field, below in pairwise(definition.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts[name] = inspect.cleandoc(text)
    return texts


def exported() -> Iterator[tuple[str, str]]:
    """Yields the name and the text of each schema file."""
    for name, adapter in DOCUMENTS.items():
        fields = adapter.json_schema(by_alias=name not in IN_SNAKE_CASE, schema_generator=_Described)
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | fields
        _remove_refused_defaults(schema, schema.get("$defs", {}))
        yield f"{name}.schema.json", json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _remove_refused_defaults(part: Any, definitions: dict[str, Any]) -> None:
    """Removes the default null of keys that refuse null: they are None in Python where the document lacks the key."""
    if isinstance(part, dict):
        if "default" in part and part["default"] is None and not _accepts_null(part, definitions):
            del part["default"]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            _remove_refused_defaults(each, definitions)


def _accepts_null(schema: dict[str, Any], definitions: dict[str, Any]) -> bool:
    if "anyOf" in schema:
        return any(_accepts_null(each, definitions) for each in schema["anyOf"])
    if "$ref" in schema:
        return _accepts_null(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    return schema.get("type", "null") == "null" and schema.get("not") != {"type": "null"} and "enum" not in schema


def main(arguments: Sequence[str]) -> int:
    """Writes the files, or with `--check` prints those that are stale; returns 1 if a file is stale, else 0."""
    if "--check" not in arguments:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in exported():
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    stale = [name for name, text in exported() if not _is(FOLDER / name, text)]
    for name in stale:
        sys.stderr.write(f"{FOLDER / name} is stale; run `make format`\n")
    return 1 if stale else 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
