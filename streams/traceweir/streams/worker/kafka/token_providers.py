"""The token providers by name: that of Amazon MSK, and those of installed packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from traceweir.streams.worker.kafka import msk_iam
from traceweir.streams.worker.kafka.errors import TokenError

GROUP = "traceweir.kafka_tokens"
"""The entry point group in which a package offers a token provider.

The name of an entry point is the name of the provider. Its object is a function without parameters that returns a pair:
a new token, and its end in seconds since 1970. It is called in any thread, and has 8 seconds.
"""

BUILT_IN: Mapping[str, Callable[[], object]] = {"msk_iam": msk_iam.token}
"""The built-in providers by name."""


def token_provider(name: str) -> Callable[[], object]:
    """Returns the provider of this name; a package is imported only if its own provider is requested.

    Raises:
        TokenError: no package offers the provider, several packages offer it, or the offered object is no function.
    """
    offers = sorted((entry for entry in entry_points(group=GROUP) if entry.name == name), key=_package)
    owners = " and ".join(map(_package, offers))
    if name in BUILT_IN:
        if offers:
            raise TokenError(
                f"token provider {name!r}: a built-in provider cannot be replaced, but {owners} offers one of that name; "
                "uninstall the package or rename its entry point"
            )
        return BUILT_IN[name]
    if not offers:
        known = ["client_credentials", *BUILT_IN, *sorted(entry_points(group=GROUP).names - BUILT_IN.keys())]
        raise TokenError(
            f"token provider {name!r}: there is no such provider; TRACEWEIR_KAFKA_OAUTH_PROVIDER must be one of "
            f"{', '.join(known)}"
        )
    if len(offers) > 1:
        raise TokenError(
            f"token provider {name!r}: {owners} offer one of this name, and only one package can; uninstall the others"
        )
    return _loaded(offers[0])


def _loaded(entry: EntryPoint) -> Callable[[], object]:
    offered = f"token provider {entry.name!r}: {entry.value} of {_package(entry)}"
    try:
        loaded = entry.load()
    except Exception as error:
        # The import of a package can fail in any way; the message must name the error.
        raise TokenError(
            f"{offered} cannot be imported: {type(error).__name__}: {error}; repair or uninstall the package"
        ) from error
    if not callable(loaded):
        raise TokenError(f"{offered} is not a function; let the entry point name one that returns a token and its end")
    found: Callable[[], object] = loaded
    return found


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.value
