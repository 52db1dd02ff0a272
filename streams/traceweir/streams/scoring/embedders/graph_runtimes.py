"""Runs the graph of an embedder: ONNX Runtime in single precision, OpenVINO in bfloat16."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors

Tokens = npt.NDArray[np.int64]
Run = Callable[[Tokens, Tokens], Vectors]
"""Returns a row per text from their token ids and the mask of what is not padding, both of shape (texts, tokens)."""

IDS, MASK = "input_ids", "attention_mask"
"""The inputs of a graph."""


def single_precision(graph: Path) -> Run:
    """Returns a function that runs a graph with ONNX Runtime; each call uses one thread.

    Raises:
        ImportError: onnxruntime is not installed.
        Exception: the graph cannot be used; the library has errors of its own.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # A group per core, see `length_groups`.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session: Any = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])

    def run(ids: Tokens, mask: Tokens) -> Vectors:
        vectors: Vectors = session.run(None, {IDS: ids, MASK: mask})[0]
        return vectors

    return run


def bfloat16(graph: Path, threads: int) -> tuple[Run, bool]:
    """Returns a function that runs a graph with OpenVINO, and whether it computes in bfloat16.

    On a processor without instructions for bfloat16 it computes in single precision: OpenVINO would only imitate
    bfloat16, which takes more time than single precision. Each call uses one of `threads` threads.

    Raises:
        ImportError: openvino is not installed, or its import fails.
        RuntimeError: the graph cannot be used.
    """
    core: Any = _openvino().Core()
    native = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    options = {
        "INFERENCE_PRECISION_HINT": "bf16" if native else "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": threads,
        # Other processes use the cores too.
        "ENABLE_CPU_PINNING": False,
    }
    try:
        compiled = core.compile_model(str(graph), "CPU", options)
    except RuntimeError as error:
        # Its last line has the reason, those before it places in OpenVINO's source.
        raise RuntimeError(str(error).strip().splitlines()[-1]) from error
    own = threading.local()

    def run(ids: Tokens, mask: Tokens) -> Vectors:
        request = getattr(own, "request", None)
        # One request computes one group at a time.
        if request is None:
            request = own.request = compiled.create_infer_request()
        vectors: Vectors = request.infer({IDS: ids, MASK: mask})[0]
        return vectors

    return run, native


def _openvino() -> Any:
    """Imports OpenVINO without its telemetry.

    Otherwise the import alone writes to the user's home and sends the use to Google Analytics, unless the user has opted
    out. OpenVINO does without this package where it is missing.
    """
    with _missing("openvino_telemetry"):
        import openvino
    return openvino


@contextmanager
def _missing(package: str) -> Iterator[None]:
    """Lets a package seem not installed during the block."""
    imported = sys.modules.get(package)
    sys.modules[package] = None  # type: ignore[assignment]  # Python's own way to refuse an import
    try:
        yield
    finally:
        del sys.modules[package]
        if imported is not None:
            sys.modules[package] = imported
