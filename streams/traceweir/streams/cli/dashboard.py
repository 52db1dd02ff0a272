"""`traceweir dashboard`: stores what workers write, and serves it."""

from __future__ import annotations

import sys

import orjson

from traceweir.streams.base.errors import InvalidSettingsError
from traceweir.streams.base.settings import load_settings


def run(*, as_json: bool) -> None:
    """Runs the dashboard until SIGTERM or Ctrl-C; prints its address on stdout.

    Raises:
        InvalidSettingsError: the environment cannot be used, or the extra `[dashboard]` is not installed.
        StoreError: the store cannot be used, or the port is taken.
    """
    settings = load_settings()
    try:
        from traceweir.streams.board.dashboard.server import run_dashboard
    except ModuleNotFoundError as error:
        raise InvalidSettingsError(
            f"the dashboard needs the package {error.name}: run `pip install '.[dashboard]'` in a clone of Traceweir"
        ) from None

    def ready(address: str) -> None:
        sys.stdout.write(f"{orjson.dumps({'address': address}).decode()}\n" if as_json else f"{address}\n")
        sys.stdout.flush()

    run_dashboard(settings, ready)
