"""Checks whether a final response is JSON, and whether it has the form that a JSON Schema describes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any, ClassVar
from urllib.parse import unquote

import orjson
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend
from pydantic import AfterValidator

from traceweir.schemas.base import JsonObject
from traceweir.schemas.text import printable
from traceweir.scorers.base import Measurement, Scorer, Subject
from traceweir.scorers.metrics.checks.response_text import final_response_of
from traceweir.scorers.text.patterns import compiled

MAX_SCHEMA_CHARS = 100_000
MAX_VALIDATED_CHARS = 100_000
"""A longer response is not compared with a schema: a comparison takes up to some microseconds a character."""
_FENCE = re.compile(r"\s*```[A-Za-z]*[ \t]*\r?\n(.*)\r?\n[ \t]*```\s*", re.DOTALL)
_NOT_SUPPORTED = frozenset(("patternProperties", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$vocabulary"))
_MAPS = frozenset(("properties", "$defs", "definitions", "dependentSchemas"))
"""Keywords whose value has schemas by names that the author of the schema chose."""
_DATA = frozenset(("const", "enum", "default", "examples", "dependentRequired", "dependencies"))
"""Keywords whose value is no schema."""


def _usable(schema: JsonObject) -> JsonObject:
    text = json.dumps(schema)
    if len(text) > MAX_SCHEMA_CHARS:
        raise ValueError(f"the schema has {len(text):,} characters as JSON; {MAX_SCHEMA_CHARS:,} are allowed")
    _validator(text)
    return schema


class ResponseIsJson(Scorer):
    """Returns 1 if the final response is JSON, and has the form of `json_schema` if there is one, else 0.

    The schema is of draft 2020-12; `pattern` in it is a regular expression in RE2's syntax, `format` is not checked, and
    a reference must point into the schema. A session's value is the mean of its invocations. An invocation without a
    final response has no value.

    >>> is_json, why = checked('{"id": 7}', '{"required": ["name"]}')
    >>> is_json, why
    (False, "$: 'name' is a required property")
    """

    default_threshold: ClassVar[float | None] = 1.0

    json_schema: Annotated[JsonObject, AfterValidator(_usable)] | None = None
    """The schema; None: any JSON."""
    in_fence: bool = False
    """Whether the JSON may stand in a code fence of Markdown, with nothing around it."""

    def score(self, subject: Subject) -> Measurement:
        """Reads the response."""
        text = final_response_of(subject)
        fence = _FENCE.fullmatch(text) if self.in_fence else None
        schema = None if self.json_schema is None else json.dumps(self.json_schema)
        is_right, reason = checked(fence[1] if fence else text, schema)
        return Measurement(value=float(is_right), rationale=reason)


def checked(text: str, schema: str | None) -> tuple[bool, str]:
    """Returns whether a text is JSON of the form of a schema, and the reason.

    Raises:
        ValueError: the text is too long, or nested too deeply, to be compared with a schema.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "depth limit" in str(error):
            raise ValueError("the response is nested too deeply to be read") from None
        return False, printable(f"the response is not JSON: {error}")
    if schema is None:
        return True, "the response is JSON"
    if len(text) > MAX_VALIDATED_CHARS:
        raise ValueError(
            f"the response has {len(text):,} characters; up to {MAX_VALIDATED_CHARS:,} are compared with a schema"
        )
    try:
        problem = next(_validator(schema).iter_errors(document), None)
    except RecursionError:
        raise ValueError("the response is nested too deeply to be compared with the schema") from None
    if problem is None:
        return True, "the response has the form of the schema"
    return False, printable(f"{problem.json_path}: {problem.message}", 500)


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    """Returns the validator of a schema.

    Raises:
        ValueError: the schema is no JSON Schema, or uses what is not supported.
    """
    document = json.loads(schema)
    # A name for the schema would be the base of its references.
    document.pop("$id", None)
    try:
        Draft202012Validator.check_schema(document)
    except SchemaError as error:
        raise ValueError(printable(f"{error.json_path} of the schema: {error.message}", 500)) from None
    _check(document, document, "$")
    return _Validator(document)


def _check(schema: object, root: object, path: str) -> None:
    """Checks that a schema has nothing that is not supported.

    Raises:
        ValueError: it has; the message names the place.
    """
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            _check(each, root, f"{path}[{number}]")
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        place = f"{path}.{keyword}"
        if keyword in _NOT_SUPPORTED and not (keyword == "$id" and path == "$"):
            raise ValueError(f"{place} of the schema: {keyword} is not supported; remove it")
        if keyword == "pattern":
            _check_pattern(value, place)
        elif keyword == "$ref":
            _check_reference(value, root, place)
        elif keyword in _MAPS and isinstance(value, dict):
            for name, each in value.items():
                _check(each, root, f"{place}.{name}")
        elif keyword not in _DATA:
            _check(value, root, place)


def _check_pattern(pattern: str, place: str) -> None:
    try:
        compiled(pattern)
    except ValueError as error:
        raise ValueError(f"{place} of the schema: {error}") from None


def _check_reference(reference: str, root: object, place: str) -> None:
    found = root
    is_inside = reference == "#" or reference.startswith("#/")
    for token in reference[2:].split("/") if reference != "#" else ():
        name = unquote(token).replace("~1", "/").replace("~0", "~")
        is_inside = is_inside and isinstance(found, dict) and name in found
        found = found[name] if is_inside and isinstance(found, dict) else None
    if not is_inside:
        raise ValueError(
            f"{place} of the schema: {printable(reference, 100)!r} is not in the schema; a reference must be the path of "
            "a part of it, such as '#/$defs/item'"
        )


def _matches(_: Any, pattern: str, instance: object, __: Any) -> Iterator[ValidationError]:
    """Yields the error of a text that does not match a pattern; RE2 takes time in proportion to the text."""
    if isinstance(instance, str) and not compiled(pattern).search(instance):
        yield ValidationError(f"{printable(instance, 100)!r} does not match {pattern!r}")


def _are_unique(_: Any, unique: bool, instance: object, __: Any) -> Iterator[ValidationError]:
    """Yields the error of equal items; comparing all pairs would take minutes for a long list."""
    if unique and isinstance(instance, list):
        texts = [json.dumps(_with_whole_numbers(item), sort_keys=True) for item in instance]
        if len(set(texts)) < len(texts):
            yield ValidationError("the list has equal items")


def _with_whole_numbers(value: object) -> object:
    """Returns a value with 1 in place of 1.0, which JSON Schema takes for equal."""
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]
    if isinstance(value, dict):
        return {name: _with_whole_numbers(item) for name, item in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


_Validator: Any = extend(Draft202012Validator, {"pattern": _matches, "uniqueItems": _are_unique})  # type: ignore[no-untyped-call]
