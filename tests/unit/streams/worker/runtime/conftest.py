"""What every test of checkpoints needs: a process that lives on, and aiokafka as it was."""

from __future__ import annotations

import pytest
from aiokafka.consumer import fetcher


@pytest.fixture(autouse=True)
def _prevent_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevents checkpoints that give up from ending the process of the tests."""
    monkeypatch.setattr("traceweir.streams.worker.runtime.checkpoint.HARD_EXIT_S", 1e6)


@pytest.fixture(autouse=True)
def _restore_aiokafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores the classes with which aiokafka reads batches, because checkpoints replace them."""
    for name in ("MemoryRecords", "PartitionRecords"):
        monkeypatch.setattr(fetcher, name, getattr(fetcher, name))
