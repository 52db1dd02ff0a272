"""Checks the ports of `traceweir up` before anything starts, and takes free ones in place of defaults that are taken."""

from __future__ import annotations

import errno
from collections.abc import Collection
from contextlib import ExitStack
from importlib.util import find_spec

from traceweir.streams.base.errors import NotReadyError
from traceweir.streams.base.setting_groups.group import ENV_PREFIX
from traceweir.streams.base.settings import Settings
from traceweir.streams.cli.terminal import complain
from traceweir.streams.worker.runtime.health import listening_socket

_PORTS = {
    "dashboard_port": ("dashboard", "the page", "dashboard_host"),
    "otlp_http_port": ("otlp", "OTLP/HTTP", "otlp_host"),
    "otlp_grpc_port": ("otlp", "OTLP/gRPC", "otlp_host"),
    "web_port": ("worker", "the health of the worker", "web_host"),
}


def replaced_ports(settings: Settings, chosen: Collection[str], part: str | None = None) -> dict[str, str]:
    """Returns the variables that replace ports of other programs by any free port, and says so on stderr.

    Args:
        settings: The ports, and the addresses to listen on.
        chosen: Names of the settings that the environment has; their ports are not replaced.
        part: The part whose ports are checked; None: all parts.

    Raises:
        NotReadyError: a chosen port is taken.
    """
    found = {}
    # Until all are checked, so that two parts do not get the same port.
    with ExitStack() as held:
        for name in sorted(_PORTS, key=lambda each: each not in chosen):
            of_part, what, host = _PORTS[name]
            if part not in (None, of_part):
                continue
            port = getattr(settings, name)
            variable = f"{ENV_PREFIX}{name.upper()}"
            if (name == "otlp_grpc_port" and not _serves_grpc(settings)) or _is_held(
                getattr(settings, host), port, held
            ):
                continue
            if name in chosen:
                raise NotReadyError(
                    f"{variable}={port}: the port is taken; set the variable to another port, or to 0 for any free port"
                )
            complain(f"Port {port} is taken, so {what} gets a free port.")
            found[variable] = "0"
    return found


def _serves_grpc(settings: Settings) -> bool:
    return settings.otlp_grpc != "off" and find_spec("grpc") is not None


def _is_held(host: str, port: int, held: ExitStack) -> bool:
    """Returns whether this process has the port until `held` is closed; true for a port that is wrong in another way."""
    try:
        held.enter_context(listening_socket(host, port))
    except OSError as error:
        # The part that listens there says what else is wrong.
        return error.errno != errno.EADDRINUSE
    return True
