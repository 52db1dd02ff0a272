"""Tests which lines reach the log of a worker at each level, the pause of garbage collection, and the count of cores."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from traceweir.streams.process_log import LogLevel, set_log_level
from traceweir.streams.process_setup import paused_gc, usable_cores

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


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "6400000 100000\n"}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": "\n"}, 8),
        ({"cpu/cpu.cfs_quota_us": "150000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
        ({}, 8),
    ],
)
def test_the_quota_of_a_container_limits_the_cores(
    files: dict[str, str], cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(8)), raising=False)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == cores
