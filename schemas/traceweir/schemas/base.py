"""Defines the base classes of all schemas: strict types, unknown keys ignored, only values that JSON can represent."""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, Self, TypeVar, get_args

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    JsonValue,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

MAX_NAMED = 5
_put = object.__setattr__
_names_of: dict[type[BaseModel], set[str]] = {}
"""The names of all fields of a class."""


class WireModel(BaseModel):
    """Base class of the documents on topics, frozen and strict.

    Unknown keys are ignored, so that an older reader accepts the documents of a newer writer.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False, populate_by_name=True)

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """Returns a document from valid values without validation, which takes a fifth of the time.

        Args:
            fields: The value of every field; none can be left out.
        """
        return cls.trusted_with(fields)

    @classmethod
    def trusted_with(cls, fields: dict[str, Any]) -> Self:
        """Returns a document as `trusted` does, from a mapping that now belongs to the document."""
        document = cls.__new__(cls)
        names = _names_of.get(cls)
        if names is None:
            names = _names_of[cls] = set(cls.model_fields)
        _put(document, "__dict__", fields)
        # Documents are frozen, so all documents of a class can have the same set; a copy has a set of its own.
        _put(document, "__pydantic_fields_set__", names)
        _put(document, "__pydantic_extra__", None)
        _put(document, "__pydantic_private__", None)
        return document


class AdkModel(WireModel):
    """Base class of Google ADK's schemas: written in snake_case, read in both snake_case and camelCase.

    An absent field is written as `null`.
    """

    model_config = ConfigDict(alias_generator=to_camel)


class ConfigModel(BaseModel):
    """Base class of the parts of the evaluation config. An unknown option is an error; camelCase is accepted."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, alias_generator=to_camel, populate_by_name=True
    )


Timestamp = AwareDatetime
"""A date-time with its time zone, ISO 8601; without a zone it is an error, because a guess could be hours off."""


def whole(value: object) -> object:
    """Returns a float without a fraction as an int (`3.0` as 3), and any other value unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]
"""An integer in the sense of JSON Schema: `3.0` is an integer."""

T = TypeVar("T")


def without_none(annotation: Any) -> Any:
    """Returns a union without None.

    >>> without_none(str | None)
    <class 'str'>
    """
    return reduce(or_, [part for part in get_args(annotation) if part is not NoneType])


class NotNull:
    """Annotates a type that is None in Python only where the key is absent: null in a document is an error.

    Use it only through `Optionally`: it discards what annotations before it in the same `Annotated` did.
    """

    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the schema of the type without None, which takes less time than a function that refuses None."""
        return handler.generate_schema(without_none(source))


Optionally = Annotated[T | None, NotNull]
"""A key that can be absent, which reads as None, but not null."""

NonEmpty = Annotated[str, Field(min_length=1)]
MAX_IDENTIFIER_CHARS = 1_024
Identifier = Annotated[str, Field(min_length=1, max_length=MAX_IDENTIFIER_CHARS)]
"""An id that a sender chooses: from 1 to 1,024 characters."""
Fraction = Annotated[float, Field(ge=0, le=1)]
JsonObject = dict[str, JsonValue]


_NO_KIND = "the key that names the kind of the document is missing: `type` in an event, `@type` in a trace"
"""The rule that a document without a discriminator breaks; pydantic's own message needs knowledge of pydantic."""


def explain(error: ValidationError) -> str:
    """Returns the problems of a document as `field.path: rule`, joined by semicolons; at most five, then their number.

    The message contains an invalid value only if the value is a number, a boolean or null. Text can contain secrets,
    and the document itself is sent along with the message.

    >>> class Point(WireModel):
    ...     x: float
    >>> try:
    ...     Point.model_validate_json('{"x": true}')
    ... except ValidationError as error:
    ...     explain(error)
    'x: Input should be a valid number (got true)'
    """
    problems = []
    for item in error.errors(include_url=False, include_context=False)[:MAX_NAMED]:
        path = ".".join(str(part) for part in item["loc"]) or "document"
        value = item["input"]
        got = f" (got {_json_word(value)})" if value is None or isinstance(value, bool | int | float) else ""
        rule = _NO_KIND if item["type"] == "union_tag_not_found" else item["msg"].removeprefix("Value error, ")
        problems.append(f"{path}: {rule}{got}")
    if error.error_count() > MAX_NAMED:
        problems.append(f"and {error.error_count() - MAX_NAMED} more")
    return "; ".join(problems)


def _json_word(value: float | None) -> str:
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)[:40]
