"""The input formats by name: those of Traceweir, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from traceweir.schemas.base import JsonObject
from traceweir.streams.formats.base import InputFormat
from traceweir.streams.formats.databricks_inference_table import INFERENCE_TABLE
from traceweir.streams.formats.databricks_rows import AGENT_EVALUATION
from traceweir.streams.formats.documents import InputError
from traceweir.streams.formats.openai_chat import OPENAI_CHAT
from traceweir.streams.formats.traceweir_json import TRACEWEIR

GROUP = "traceweir.formats"
"""The entry point group in which a package offers input formats, by their names."""

BUILT_IN: Mapping[str, InputFormat] = {
    each.name: each
    for each in (
        TRACEWEIR,
        OPENAI_CHAT,
        AGENT_EVALUATION,
        INFERENCE_TABLE,
    )
}
"""In the order of the help."""


class UnusableFormatError(InputError):
    """A name has no usable input format; the message names the reason and the way out."""


def input_format(name: str) -> InputFormat:
    """Returns the format of this name; the code of a package is imported only for its own format.

    Raises:
        UnusableFormatError: nobody offers the format, more than one package does, or what is offered is no format of this name.
    """
    offers = sorted((entry for entry in entry_points(group=GROUP) if entry.name == name), key=_package)
    owners = " and ".join(map(_package, offers))
    if name in BUILT_IN:
        if offers:
            raise UnusableFormatError(
                f"format {name!r}: a built-in format cannot be replaced, but {owners} offers one of that name; "
                "uninstall it or rename its entry point"
            )
        return BUILT_IN[name]
    if not offers:
        raise UnusableFormatError(
            f"format {name!r:.80}: there is no such format; it must be one of {', '.join(known_formats())}"
        )
    if len(offers) > 1:
        raise UnusableFormatError(f"format {name!r}: {owners} both offer it; uninstall one of them")
    return _loaded(offers[0])


def known_formats() -> list[str]:
    """Returns all names of formats: the built-in formats, then those of installed packages."""
    return [*BUILT_IN, *sorted(entry_points(group=GROUP).names - BUILT_IN.keys())]


def recognized_format(document: JsonObject) -> InputFormat | None:
    """Returns the built-in format that has the keys of the document; None if no format matches.

    Traceweir's own format is tried last: it looks only for a `type`, which a transcript can have as well.
    """
    for each in sorted(BUILT_IN.values(), key=lambda each: each is TRACEWEIR):
        if each.recognition is not None and each.recognition.recognizes(document):
            return each
    return None


def _loaded(entry: EntryPoint) -> InputFormat:
    offered = f"format {entry.name!r}: {entry.value} of {_package(entry)}"
    try:
        loaded = entry.load()
    except Exception as error:  # a package may fail at import in any way; the message must name the error
        raise UnusableFormatError(
            f"{offered} cannot be imported: {type(error).__name__}: {error}; mend or uninstall the package"
        ) from error
    if not isinstance(loaded, InputFormat):
        raise UnusableFormatError(f"{offered} is no InputFormat; the entry point must name one")
    if loaded.name != entry.name:
        raise UnusableFormatError(f"{offered} calls itself {loaded.name!r}; give both the same name")
    return loaded


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
