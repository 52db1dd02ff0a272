"""Fixtures and settings for every test."""

import gc
import logging
import math
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from tests.support.command_line import run
from tests.support.kafka import (
    certificates,
    embedded_broker,
    kafka,
    limited_decompression,
    restored_fetcher,
    secured_kafka,
)

from traceweir.streams.base import process_log
from traceweir.streams.base.process_setup import paused_gc, tune_gc

__all__ = [
    "certificates",
    "embedded_broker",
    "kafka",
    "limited_decompression",
    "restored_fetcher",
    "run",
    "secured_kafka",
]

# A deadline would make speed a claim of the tests. Only `make test-large` tries all examples.
hypothesis.settings.register_profile("traceweir", deadline=None)
hypothesis.settings.register_profile("fast", deadline=None, max_examples=20)
hypothesis.settings.load_profile("traceweir")

# A shell lets its background jobs ignore SIGINT, and processes inherit this: a command under test would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _no_running_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hides the broker of a `traceweir up` of the developer, which commands would find."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-home")))
        yield


@pytest.fixture(autouse=True)
def _forget_earlier_commands() -> None:
    """Undoes what commands of earlier tests did to the log of this process.

    They mute Kafka's client, and log to the stderr that pytest gave to their own test, which is closed by now.
    """
    for name in ("aiokafka", "asyncio"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    root = logging.getLogger()
    for handler in [each for each in root.handlers if type(each).__module__ == process_log.__name__]:
        root.removeHandler(handler)


@pytest.fixture(autouse=True)
def _keep_clients_of_judges() -> Iterator[None]:
    """Keeps litellm from dropping clients of earlier tests, whose event loops have ended.

    litellm keeps the last 200 clients for ten minutes, one for each event loop. The connections of a dropped client are closed
    by the garbage collector, in the middle of a later test, which would fail.
    """
    yield
    # litellm loads some of its names when they are asked for.
    if (cache := getattr(sys.modules.get("litellm"), "__dict__", {}).get("in_memory_llm_clients_cache")) is not None:
        cache.max_size_in_memory = sys.maxsize
        cache.default_ttl = 86_400
        cache.ttl_dict.update(dict.fromkeys(cache.ttl_dict, math.inf))
        cache.expiration_heap.clear()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Looks for doctests only in modules that have some and no tests: pytest imports and searches each module that it asks."""
    collectors = yield
    has_doctests = not file_path.name.startswith("test_") and b">>> " in file_path.read_bytes()
    return [each for each in collectors if type(each) is pytest.Module or has_doctests]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collects thousands of tests, which live until the end, without the garbage collections that would visit them."""
    with paused_gc():
        yield
        # Before the pause ends: the collection that then comes, and that of `tune_gc`, find nothing to visit.
        gc.freeze()
    tune_gc()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the tests of each `xdist_group` together, and before all others.

    Each process of pytest gets a part of the list, and one without work takes the end of the longest part. So the groups
    stay in the first process, and the heavy library of a group is loaded in one.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=_group_of)


def _group_of(item: pytest.Item) -> tuple[bool, str]:
    mark = item.get_closest_marker("xdist_group")
    return mark is None, mark.args[0] if mark else ""


def pytest_configure(config: pytest.Config) -> None:
    """Lets the end of the process free what was frozen; extension modules complain about what remains.

    The cleanup that was added first runs last: after the garbage collections of pytest, which would visit it all.
    """
    config.add_cleanup(gc.unfreeze)
