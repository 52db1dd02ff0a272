"""Stands for the module `openvino` where it is not installed: it records how a graph is compiled and run."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

import numpy as np


class _Request:
    def __init__(self) -> None:
        self.threads = set[int]()

    def infer(self, inputs: dict[str, Any]) -> list[np.ndarray]:
        self.threads.add(threading.get_ident())
        return [np.ones((len(inputs["input_ids"]), 2), np.float32)]


class _Compiled:
    def __init__(self) -> None:
        self.requests: list[_Request] = []

    def create_infer_request(self) -> _Request:
        self.requests.append(_Request())
        return self.requests[-1]


def fake_openvino(*capabilities: str, error: str = "") -> Any:
    """Returns a module whose processor has these capabilities.

    Its list `compiled` has the path of the graph, the options and the compiled graph of each compilation. With `error`,
    every compilation raises it.
    """
    module: Any = ModuleType("openvino")
    module.compiled = []

    class Core:
        def get_property(self, device: str, name: str) -> list[str]:
            assert (device, name) == ("CPU", "OPTIMIZATION_CAPABILITIES")
            return list(capabilities)

        def compile_model(self, graph: str, device: str, options: dict[str, object]) -> _Compiled:
            assert device == "CPU"
            if error:
                raise RuntimeError(error)
            compiled = _Compiled()
            module.compiled.append((graph, options, compiled))
            return compiled

    module.Core = Core
    return module
