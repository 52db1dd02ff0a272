"""Runs the graph of an embedder: ONNX Runtime in single precision, OpenVINO in bfloat16."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from traceweir.scorers.embedding import Vectors

log = logging.getLogger(__name__)

Tokens = npt.NDArray[np.int64]
Run = Callable[[Tokens, Tokens], Vectors]
"""Returns a row per text from their token ids and the mask of what is not padding, both of shape (texts, tokens)."""

IDS, MASK = "input_ids", "attention_mask"
"""The inputs of a graph."""


def single_precision(graph: Path) -> Run:
    """Returns a function that runs a graph with ONNX Runtime; a call takes one thread.

    Raises:
        ImportError: onnxruntime is not installed.
        Exception: the graph cannot be used; the library has errors of its own.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # a group per core, see `length_groups`
    session: Any = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])

    def run(ids: Tokens, mask: Tokens) -> Vectors:
        vectors: Vectors = session.run(None, {IDS: ids, MASK: mask})[0]
        return vectors

    return run


def bfloat16(graph: Path, threads: int) -> Run:
    """Returns a function that runs a graph with OpenVINO; a call takes one of so many threads.

    A processor without instructions for bfloat16 computes in single precision, and the log says so: OpenVINO would only
    imitate bfloat16, which takes more time than single precision.

    Raises:
        ImportError: openvino is not installed.
        Exception: the graph cannot be used; the library has errors of its own.
    """
    core: Any = _openvino().Core()
    native = "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    if not native:
        log.warning(
            "this processor has no instructions for bfloat16 (AVX512_BF16 or AMX): the embedder computes in single "
            "precision, which takes about twice the time"
        )
    compiled = core.compile_model(
        str(graph),
        "CPU",
        {
            "INFERENCE_PRECISION_HINT": "bf16" if native else "f32",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": threads,
            "ENABLE_CPU_PINNING": False,  # other processes use the cores too
        },
    )
    own = threading.local()

    def run(ids: Tokens, mask: Tokens) -> Vectors:
        request = getattr(own, "request", None)
        if request is None:  # one request computes one group at a time
            request = own.request = compiled.create_infer_request()
        vectors: Vectors = request.infer({IDS: ids, MASK: mask})[0]
        return vectors

    return run


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
    """Lets a package seem not installed during the block, unless it is imported already."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # Python's own way to refuse an import
    try:
        yield
    finally:
        del sys.modules[package]
