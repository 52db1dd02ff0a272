"""Tests which lines reach the log of a worker at each level, and the pause of garbage collection."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator

import pytest

from traceweir.streams.base.process_log import LogLevel, set_log_level
from traceweir.streams.base.process_setup import paused_gc

OWN, LIBRARY = logging.getLogger("traceweir.streams.worker"), logging.getLogger("aiokafka.client")
LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"]


@pytest.fixture(autouse=True)
def _restore_levels() -> Iterator[None]:
    loggers = logging.getLogger(), logging.getLogger("traceweir")
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def passing(logger: logging.Logger) -> list[str]:
    return [level for level in LEVELS if logger.isEnabledFor(logging.getLevelNamesMapping()[level])]


@pytest.mark.parametrize(
    ("level", "own", "library"),
    [
        ("debug", LEVELS, LEVELS[1:]),
        ("info", LEVELS[1:], LEVELS[2:]),
        ("warning", LEVELS[2:], LEVELS[2:]),
        ("error", LEVELS[3:], LEVELS[3:]),
    ],
)
def test_the_level_applies_to_the_worker_and_libraries_never_log_the_content_of_records(
    level: LogLevel, own: list[str], library: list[str]
) -> None:
    set_log_level(level)
    assert (passing(OWN), passing(LIBRARY)) == (own, library)


@pytest.fixture
def gc_enabled_again() -> Iterator[None]:
    yield
    gc.enable()


@pytest.mark.usefixtures("gc_enabled_again")
def test_collections_pause_within_the_block_and_continue_after_an_error() -> None:
    seen = []

    def fail_in_the_block() -> None:
        with paused_gc():
            seen.append(gc.isenabled())
            raise ImportError

    with pytest.raises(ImportError):
        fail_in_the_block()
    assert (seen, gc.isenabled()) == ([False], True)


@pytest.mark.usefixtures("gc_enabled_again")
def test_a_process_without_collections_stays_without_them() -> None:
    gc.disable()
    with paused_gc():
        pass
    assert not gc.isenabled()
