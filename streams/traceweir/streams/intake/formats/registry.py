"""The input formats by name: those of Traceweir, and those of installed packages."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points

from traceweir.streams.intake.formats.adk_eval_result import ADK_EVAL_RESULT
from traceweir.streams.intake.formats.adk_session import ADK_SESSION
from traceweir.streams.intake.formats.base import InputFormat
from traceweir.streams.intake.formats.databricks_inference_table import INFERENCE_TABLE
from traceweir.streams.intake.formats.databricks_rows import AGENT_EVALUATION
from traceweir.streams.intake.formats.documents import InputError
from traceweir.streams.intake.formats.openai_chat import OPENAI_CHAT
from traceweir.streams.intake.formats.otlp import OTLP
from traceweir.streams.intake.formats.traceweir_json import TRACEWEIR

GROUP = "traceweir.formats"
"""The entry point group in which a package offers input formats. The name of an entry point is the format's name."""

BUILT_IN: Mapping[str, InputFormat] = {
    each.name: each
    for each in (
        TRACEWEIR,
        OPENAI_CHAT,
        ADK_SESSION,
        ADK_EVAL_RESULT,
        INFERENCE_TABLE,
        AGENT_EVALUATION,
        OTLP,
    )
}
"""The built-in formats by name, in the order in which `--help` lists them.

The order decides where a document has the keys of several formats: the first of them reads the document.
"""


class UnusableFormatError(InputError):
    """No usable input format has this name. The message names the reason and the way out."""


def input_format(name: str) -> InputFormat:
    """Returns the format of this name; a package is imported only if its own format is requested.

    Raises:
        UnusableFormatError: no package offers the format, several packages offer it, or the offered object is not an
            InputFormat of this name.
    """
    offers = sorted((entry for entry in entry_points(group=GROUP) if entry.name == name), key=_package)
    owners = " and ".join(map(_package, offers))
    if name in BUILT_IN:
        if offers:
            raise UnusableFormatError(
                f"format {name!r}: a built-in format cannot be replaced, but {owners} offers a format of that name; "
                "uninstall the package or rename its entry point"
            )
        return BUILT_IN[name]
    if not offers:
        raise UnusableFormatError(
            f"format {name!r:.80}: there is no such format; it must be one of {', '.join(known_formats())}"
        )
    if len(offers) > 1:
        raise UnusableFormatError(
            f"format {name!r}: {owners} offer a format of this name, and only one package can; uninstall the others"
        )
    return _loaded(offers[0])


def known_formats() -> list[str]:
    """Returns all names of formats: the built-in formats, then those of installed packages."""
    return [*BUILT_IN, *sorted(entry_points(group=GROUP).names - BUILT_IN.keys())]


def installed_formats() -> list[InputFormat]:
    """Returns the formats of installed packages; a package that cannot be used is left out."""
    found = []
    for name in sorted(entry_points(group=GROUP).names - BUILT_IN.keys()):
        # Raised with its reason where somebody requests the format.
        with suppress(UnusableFormatError):
            found.append(input_format(name))
    return found


def _loaded(entry: EntryPoint) -> InputFormat:
    offered = f"format {entry.name!r}: {entry.value} of {_package(entry)}"
    try:
        loaded = entry.load()
    except Exception as error:
        # The import of a package can fail in any way; the message must name the error.
        raise UnusableFormatError(
            f"{offered} cannot be imported: {type(error).__name__}: {error}; repair or uninstall the package"
        ) from error
    if not isinstance(loaded, InputFormat):
        raise UnusableFormatError(f"{offered} is not an InputFormat; let the entry point name an InputFormat")
    if loaded.name != entry.name:
        raise UnusableFormatError(
            f"{offered} has the name {loaded.name!r}; use the same name for the entry point and the format"
        )
    return loaded


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
