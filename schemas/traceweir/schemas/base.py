"""What every model on the wire shares: strict types, unknown keys tolerated, nothing that JSON cannot say."""

from __future__ import annotations

from typing import Annotated, Any, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError
from pydantic.alias_generators import to_camel

MAX_NAMED = 5
_put = object.__setattr__


class WireModel(BaseModel):
    """A document on a topic. Frozen and strict; keys it does not know are ignored, so that an older reader survives a newer writer."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", allow_inf_nan=False, populate_by_name=True)

    @classmethod
    def trusted(cls, **fields: Any) -> Self:
        """A document of values that are known to be right, at a fifth of the cost: nothing is checked, and every field must be given."""
        document = cls.__new__(cls)
        _put(document, "__dict__", fields)
        _put(document, "__pydantic_fields_set__", set(fields))
        _put(document, "__pydantic_extra__", None)
        _put(document, "__pydantic_private__", None)
        return document


class AdkModel(WireModel):
    """A shape of Google ADK's: written in snake_case, read in snake_case or camelCase, `null` where a field is absent."""

    model_config = ConfigDict(alias_generator=to_camel)


class ConfigModel(BaseModel):
    """A part of the evaluation config. An option that does not exist is an error, never ignored; camelCase is accepted."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, alias_generator=to_camel, populate_by_name=True
    )


Timestamp = AwareDatetime
"""An instant with its zone, ISO 8601. One without a zone is refused: guessing would be wrong by hours."""


def whole(value: object) -> object:
    """`3.0` as 3; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]
"""A whole number in JSON Schema's sense: `3.0` is one."""

T = TypeVar("T")


def not_null(value: object) -> object:
    """The value.

    Raises:
        ValueError: it is None.
    """
    if value is None:
        raise ValueError("null is not allowed; leave the key out")
    return value


Optionally = Annotated[T | None, BeforeValidator(not_null)]
"""A key that may be absent (then it reads as None), but not null."""

NonEmpty = Annotated[str, Field(min_length=1)]
Identifier = Annotated[str, Field(min_length=1, max_length=1024)]
"""An id chosen by a sender: at least one character, at most 1,024."""
Fraction = Annotated[float, Field(ge=0, le=1)]
JsonObject = dict[str, JsonValue]


def explain(error: ValidationError) -> str:
    """What is wrong with a document, as `field.path: rule` joined by semicolons; at most five, then a count.

    The offending value is shown only when it is a number, a truth value or null: text may hold secrets, and the document itself travels
    beside the message.

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
        problems.append(f"{path}: {item['msg'].removeprefix('Value error, ')}{got}")
    if error.error_count() > MAX_NAMED:
        problems.append(f"and {error.error_count() - MAX_NAMED} more")
    return "; ".join(problems)


def _json_word(value: float | None) -> str:
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)[:40]
