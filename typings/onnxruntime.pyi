"""The part of ONNX Runtime that is used; its own annotations leave out the types of arguments."""

from collections.abc import Mapping, Sequence

from numpy import float32, int64
from numpy.typing import NDArray

class GraphOptimizationLevel:
    ORT_ENABLE_BASIC: GraphOptimizationLevel

class SessionOptions:
    graph_optimization_level: GraphOptimizationLevel
    enable_cpu_mem_arena: bool
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int

class NodeArg:
    name: str

class InferenceSession:
    def __init__(
        self, path_or_bytes: str | bytes, sess_options: SessionOptions, *, providers: Sequence[str]
    ) -> None: ...
    def get_inputs(self) -> Sequence[NodeArg]: ...
    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[int64]]
    ) -> list[NDArray[float32]]: ...

def disable_telemetry_events() -> None: ...
