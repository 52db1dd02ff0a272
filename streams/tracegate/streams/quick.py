"""A quick look at a document: plainly right, or pydantic has to judge.

Nearly every record is right, and to have pydantic say so takes most of what joining it costs. From a model this derives a msgspec type
that accepts nothing that the model refuses, at a fraction of the cost. What it does not accept may still be right: keys in camelCase,
`3.0` for a whole number, a union of models. The model alone says so, and alone says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache, partial, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, JsonValue
from pydantic.fields import FieldInfo

from tracegate.schemas.base import AdkModel, not_null, whole
from tracegate.schemas.trace import utc_text

NotPlain = msgspec.ValidationError
"""The document is not plainly right."""

_LIMITS = ((Ge, "ge"), (Le, "le"), (MinLen, "min_length"), (MaxLen, "max_length"))


def quick_look(model: type[BaseModel]) -> Callable[[object], Any]:
    """What takes a document, as `orjson.loads` gives it, and gives an object with the attributes of the model.

    It raises `NotPlain` for every document that the model refuses, and for some others.

    >>> from tracegate.schemas.events import SessionEnded
    >>> look = quick_look(SessionEnded)
    >>> look({"type": "session.ended", "session_id": "s", "occurred_at": "2026-01-31T11:00:00Z"}).session_id
    's'
    >>> look({"type": "session.ended", "session_id": 7, "occurred_at": "2026-01-31T11:00:00Z"})
    Traceback (most recent call last):
    ...
    msgspec.ValidationError: Expected `str`, got `int` - at `$.session_id`
    """
    convert = partial(msgspec.convert, type=_struct(model), dec_hook=_decode)
    moments = [name for name, field in model.model_fields.items() if field.annotation is AwareDatetime]
    if not moments:
        return convert

    def look(document: Any) -> Any:
        found = convert(document)
        for name in moments:
            if document[name][26:27].isdigit():  # a seventh digit of the fraction: msgspec rounds, pydantic cuts off
                raise NotPlain(f"{name}: finer than a microsecond")
        return found

    return look


class _UntranslatableError(Exception):
    """Left to the model."""


class _UtcText(str):
    """A text that `utc_text` accepts."""

    __slots__ = ()


def _decode(kind: type, value: object) -> object:
    if kind is _UtcText and isinstance(value, str):
        return kind(utc_text(value))
    raise ValueError(f"not plainly a {kind.__name__}")


@cache
def _struct(model: type[BaseModel]) -> type[msgspec.Struct]:
    checks = model.__pydantic_decorators__
    if checks.model_validators or checks.field_validators or checks.validators or checks.root_validators:
        raise _UntranslatableError
    fields: list[tuple[str, Any, Any]] = []
    names = {}
    for name, field in model.model_fields.items():
        kind: Any = NoneType
        try:
            kind = _translated(field.annotation, field.metadata)
        except _UntranslatableError:
            if field.is_required():
                raise
        fields.append((name, kind, msgspec.NODEFAULT if field.is_required() else None))
        names[name] = name if issubclass(model, AdkModel) else field.alias or name
    # An ADK shape has two names a key: one that is not in snake_case is unknown here, and left to the model.
    forbid = issubclass(model, AdkModel)
    return msgspec.defstruct(model.__name__, fields, kw_only=True, gc=False, rename=names, forbid_unknown_fields=forbid)


def _translated(annotation: Any, metadata: Iterable[object]) -> Any:
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        return _translated(annotation, [*inner, *metadata])
    limits: dict[str, Any] = {}
    for item in _flat(metadata):
        if isinstance(item, BeforeValidator) and item.func is not_null:
            annotation = reduce(or_, [part for part in get_args(annotation) if part is not NoneType])
        elif isinstance(item, AfterValidator) and item.func is utc_text:
            annotation = _UtcText
        elif pattern := getattr(item, "pattern", None):
            limits["pattern"] = pattern
        elif found := [(name, getattr(item, name)) for kind, name in _LIMITS if isinstance(item, kind)]:
            limits |= found
        elif not (isinstance(item, BeforeValidator) and item.func is whole):
            raise _UntranslatableError
    kind = _kind(annotation)
    return Annotated[kind, msgspec.Meta(**limits)] if limits else kind


def _kind(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _translated(annotation, ())
    if annotation in (str, int, float, bool, NoneType, _UtcText):
        return annotation
    if annotation is JsonValue:
        return Any
    if annotation is AwareDatetime:
        return Annotated[datetime, msgspec.Meta(tz=True)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _struct(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return annotation
    if origin in (Union, UnionType):
        some = [part for part in parts if part is not NoneType]
        if len(some) == 1:
            return _translated(some[0], ()) | None
    if origin in (list, dict, tuple):
        return origin[tuple(_translated(part, ()) for part in parts)]
    raise _UntranslatableError


def _flat(metadata: Iterable[object]) -> Iterable[object]:
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from item.metadata
        else:
            yield item
