"""Tests how OpenVINO is imported and asked, with a module that stands for it."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.support.fake_openvino import fake_openvino

from traceweir.streams.scoring.embedders.graph_runtimes import bfloat16

TOKENS = np.ones((3, 4), np.int64)


@pytest.mark.parametrize(("able", "precision"), [("BF16", "bf16"), ("INT8", "f32")])
def test_bfloat16_is_asked_for_where_the_processor_has_it(
    able: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fake_openvino("FP32", able)
    monkeypatch.setitem(sys.modules, "openvino", module)
    run, native = bfloat16(Path("model.onnx"), threads=3)
    ((graph, options, _),) = module.compiled
    assert graph == "model.onnx"
    assert native == (precision == "bf16")
    assert options == {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": 3,
        "NUM_STREAMS": 3,
        "ENABLE_CPU_PINNING": False,
    }
    assert run(TOKENS, TOKENS).shape == (3, 2)


def test_each_thread_has_a_request_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_openvino("BF16")
    monkeypatch.setitem(sys.modules, "openvino", module)
    run, _ = bfloat16(Path("model.onnx"), threads=2)
    both = threading.Barrier(2)

    def twice() -> None:
        run(TOKENS, TOKENS)
        both.wait(10)  # otherwise the second thread can have the number of the first
        run(TOKENS, TOKENS)

    threads = [threading.Thread(target=twice) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((_, _, compiled),) = module.compiled
    assert [len(request.threads) for request in compiled.requests] == [1, 1]


def test_an_error_has_its_reason_and_no_place_in_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    error = "Exception from src/core.cpp:132:\nCheck failed\nonnx: the file is empty\n\n"
    monkeypatch.setitem(sys.modules, "openvino", fake_openvino("BF16", error=error))
    with pytest.raises(RuntimeError, match=r"^onnx: the file is empty$"):
        bfloat16(Path("model.onnx"), threads=1)


@pytest.mark.parametrize("imported", [False, True], ids=["not imported before", "imported before"])
def test_the_telemetry_of_openvino_seems_not_to_be_installed(
    imported: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "openvino_telemetry.py").write_text("")
    (tmp_path / "openvino.py").write_text(
        "from tests.support.fake_openvino import fake_openvino\n"
        "Core = fake_openvino('BF16').Core\n"
        "try:\n    import openvino_telemetry\n    sends = True\n"
        "except ImportError:\n    sends = False\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("openvino", "openvino_telemetry"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if imported:
        monkeypatch.setitem(sys.modules, "openvino_telemetry", marker := fake_openvino())
    bfloat16(Path("model.onnx"), threads=1)
    openvino = sys.modules.pop("openvino")
    assert openvino.sends is False
    assert sys.modules.get("openvino_telemetry") is (marker if imported else None)
    assert ("openvino_telemetry" in sys.modules) == imported
