"""During a rebalance Faust seeks in partitions that are gone and warns of it; the worker's log has no such line."""

from __future__ import annotations

import logging

import faust
import pytest

from traceweir.streams.kafka import faust_adapter


class _Intake:
    inputs: dict[str, object] = {}


def test_the_log_leaves_out_the_seeks_of_a_rebalance_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    faust_adapter.install(faust.App("seeks"), _Intake(), "changelog")  # type: ignore[arg-type]
    log = logging.getLogger(faust_adapter.__name__)
    with caplog.at_level(logging.WARNING):
        log.warning("[^--Consumer]: exception performing seek when flow not active No current assignment")
        log.warning("[^--Consumer]: another warning")
    assert [record.getMessage() for record in caplog.records] == ["[^--Consumer]: another warning"]
