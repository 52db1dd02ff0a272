"""Decodes valid documents with msgspec, and leaves all other documents to pydantic.

Nearly every record is valid, and pydantic's validation is most of the cost of joining a record. This module derives a
msgspec type from a model. The type accepts no document that the model rejects, at a fraction of the cost, with two
exceptions that are left to the caller: a document that is nested deeper than the model reads, and a key that occurs
twice in a mapping of a document of over `SHORT` bytes, of which the last one counts.

A document that the type rejects can still be valid: it can contain keys in camelCase, `3.0` for an integer, or a union of
models. Only the model decides about such a document, and only the model reports the problems.

A model with a rule over several keys lists in `plain_with` the keys whose presence satisfies the rule with any values,
if the keys that this module does not read are absent. A model whose rules only read its attributes says so with
`rules_read_attributes`: they then apply to the derived type too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Protocol, Union, get_args, get_origin

import msgspec
import orjson
from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, JsonValue
from pydantic.fields import FieldInfo

from traceweir.schemas.base import AdkModel, NotNull, whole, without_none
from traceweir.schemas.invocation import without_thoughts
from traceweir.schemas.trace import require_short_names, utc_text

TAG = "type"
"""The key that identifies the model in a union."""
SHORT = 4_000
"""Length in bytes above which a document can contain a number with more digits than pydantic reads, in any key."""

_HARMLESS = 180
"""Number of opening brackets up to which no document is too deep for pydantic, which reads 200 levels."""
_READ_ATTRIBUTES = (require_short_names,)
"""Rules of an annotated model that only read its attributes."""
_NOTHING_TO_DO = (without_thoughts,)
"""Functions that change nothing in a document that the derived type accepts: it accepts no part that is reasoning."""
_LIMITS = ((Gt, "gt"), (Ge, "ge"), (Lt, "lt"), (Le, "le"), (MinLen, "min_length"), (MaxLen, "max_length"))


class NeedsFullValidation(Exception):  # noqa: N818  # an outcome that the caller handles
    """The derived type does not accept the document; the model must validate it."""


class Decode(Protocol):
    """Decodes a document's bytes to an object with the attributes of the model."""

    def __call__(self, raw: bytes, parsed: object = None, /) -> Any:
        """Returns the object in `raw`.

        With `parsed`, which is orjson's result for the same bytes, `raw` is not parsed again.
        """


def fast_decoder(*models: type[BaseModel], as_models: frozenset[type[BaseModel]] = frozenset()) -> Decode:
    """Returns a function that decodes a document to an object with what its model has: fields, properties, class variables.

    Among several models, the key `type` of the document selects the model. Parts whose model is in `as_models` are objects
    of that model. The function raises `NeedsFullValidation` for documents that the model rejects, with the two exceptions
    that the module names, and for some valid documents. Times are rounded to the microsecond. In unknown keys only the JSON
    grammar is checked, so that a number there can have any size.

    >>> from traceweir.schemas.events import SessionEnded, ToolCalled
    >>> decode = fast_decoder(SessionEnded, ToolCalled)
    >>> decode(b'{"type": "session.ended", "session_id": "s", "occurred_at": "2026-01-31T11:00:00Z"}').of_invocation
    False
    >>> decode(b'{"type": "session.ended", "session_id": 7, "occurred_at": "2026-01-31T11:00:00Z"}')
    Traceback (most recent call last):
    ...
    traceweir.streams.pipeline.decoding.fast_decode.NeedsFullValidation: Expected `str`, got `int` - at `$.session_id`
    """
    structs = [_struct(model, as_models, len(models) > 1) for model in models]
    kind = reduce(or_, structs)
    decode_json = msgspec.json.Decoder(kind, dec_hook=_decode).decode

    def decode(raw: bytes, parsed: object = None, /) -> Any:
        try:
            # msgspec parses a short document faster, even if orjson must parse the document too. For a longer document
            # it is faster to convert orjson's result.
            if len(raw) > SHORT:
                return msgspec.convert(orjson.loads(raw) if parsed is None else parsed, kind, dec_hook=_decode)
            found = decode_json(raw)
            # In unknown keys msgspec checks only the grammar and accepts bytes that are not UTF-8.
            if not raw.isascii():
                raw.decode()
        except (ValueError, RecursionError) as why:
            raise NeedsFullValidation(str(why)) from None
        return found

    return decode


def may_be_deep(raw: bytes) -> bool:
    """Returns whether a document may be nested deeper than pydantic reads; False if it has few brackets."""
    return len(raw) > 2 * _HARMLESS and raw.count(b"{") + raw.count(b"[") > _HARMLESS


class _Untranslatable(Exception):  # noqa: N818  # an outcome that the caller handles
    """Raised if no msgspec type can be derived from this part of a model."""


class _UtcText(str):
    """A text that `utc_text` accepts."""

    __slots__ = ()


def _decode(kind: type, value: object) -> object:
    if kind is _UtcText and isinstance(value, str):
        return kind(utc_text(value))
    if issubclass(kind, BaseModel):
        return kind.model_validate(value)
    raise ValueError(f"the type {kind.__name__} needs full validation")


_Rule = Callable[[Any], object]
"""Raises an error if an object, of a model or of its derived type, breaks a rule."""


def _rules_of(model: type[BaseModel]) -> list[_Rule]:
    """Returns the rules of a model that apply to its derived type.

    Raises:
        _Untranslatable: the model has other rules.
    """
    checks = model.__pydantic_decorators__
    if checks.field_validators or checks.validators or checks.root_validators:
        raise _Untranslatable
    if getattr(model, "plain_with", ()):
        return []
    if checks.model_validators and not getattr(model, "rules_read_attributes", False):
        raise _Untranslatable
    return [rule.func for rule in checks.model_validators.values()]


def _checking(rules: Sequence[_Rule]) -> Callable[[Any], None]:
    def check(found: Any) -> None:
        for rule in rules:
            rule(found)

    return check


def _unstored(model: type[BaseModel]) -> dict[str, Any]:
    """Returns the properties and the class variables of a model by their names."""
    own = model.__mro__[: model.__mro__.index(BaseModel)]
    return {
        name: item
        for each in reversed(own)
        for name, item in vars(each).items()
        if isinstance(item, property) or name in model.__class_vars__
    }


@cache
def _struct(
    model: type[BaseModel], as_models: frozenset[type[BaseModel]], tagged: bool = False, rules: tuple[_Rule, ...] = ()
) -> type[msgspec.Struct]:
    needed: tuple[str, ...] = getattr(model, "plain_with", ())
    rules = (*_rules_of(model), *rules)
    fields: list[tuple[str, Any, Any]] = []
    names = {}
    tag = get_args(model.model_fields[TAG].annotation)[0] if tagged else None
    for name, field in model.model_fields.items():
        if name == TAG and tagged:
            continue
        kind: Any = NoneType
        required = field.is_required() or name in needed
        annotation = without_none(field.annotation) if name in needed else field.annotation
        try:
            kind = _translated(annotation, field.metadata, as_models)
        except _Untranslatable:
            if required:
                raise
        if field.default_factory is not None:
            # No model has one today.
            raise _Untranslatable
        fields.append((name, kind, msgspec.NODEFAULT if required else field.get_default()))
        names[name] = name if issubclass(model, AdkModel) else field.alias or name
    # A field of an ADK model has two names. A document with the camelCase name has an unknown key here, and is left to
    # the model.
    forbid = issubclass(model, AdkModel)
    return msgspec.defstruct(
        model.__name__,
        fields,
        namespace=_unstored(model)
        | ({TAG: tag} if tagged else {})
        | ({"__post_init__": _checking(rules)} if rules else {}),
        tag_field=TAG if tagged else None,
        tag=tag,
        kw_only=True,
        gc=False,
        rename=names,
        forbid_unknown_fields=forbid,
    )


def _translated(annotation: Any, metadata: Iterable[object], as_models: frozenset[type[BaseModel]]) -> Any:
    if get_origin(annotation) is Annotated:
        annotation, *inner = get_args(annotation)
        return _translated(annotation, [*inner, *metadata], as_models)
    limits: dict[str, Any] = {}
    rules: list[_Rule] = []
    for item in _flat(metadata):
        if item is NotNull:
            annotation = without_none(annotation)
        elif isinstance(item, AfterValidator) and item.func is utc_text:
            annotation = _UtcText
        elif isinstance(item, AfterValidator) and item.func in _NOTHING_TO_DO:
            pass
        elif isinstance(item, AfterValidator) and item.func in _READ_ATTRIBUTES:
            rules.append(item.func)
        elif pattern := getattr(item, "pattern", None):
            limits["pattern"] = pattern
        elif found := [(name, getattr(item, name)) for kind, name in _LIMITS if isinstance(item, kind)]:
            limits |= found
        elif not (isinstance(item, BeforeValidator) and item.func is whole):
            raise _Untranslatable
    kind = _struct(annotation, as_models, rules=tuple(rules)) if rules else _kind(annotation, as_models)
    return Annotated[kind, msgspec.Meta(**limits)] if limits else kind


def _kind(annotation: Any, as_models: frozenset[type[BaseModel]]) -> Any:
    if get_origin(annotation) is Annotated:
        return _translated(annotation, (), as_models)
    if annotation in (str, int, float, bool, NoneType, _UtcText):
        return annotation
    if annotation is JsonValue:
        return Any
    if annotation is AwareDatetime:
        return Annotated[datetime, msgspec.Meta(tz=True)]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation if annotation in as_models else _struct(annotation, as_models)
    origin = get_origin(annotation)
    parts = get_args(annotation)
    if origin is Literal:
        return annotation
    if origin in (Union, UnionType):
        some = [part for part in parts if part is not NoneType]
        if len(some) == 1:
            return _translated(some[0], (), as_models) | None
    if origin in (list, dict, tuple):
        return origin[tuple(_translated(part, (), as_models) for part in parts)]
    raise _Untranslatable


def _flat(metadata: Iterable[object]) -> Iterable[object]:
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from item.metadata
        else:
            yield item
