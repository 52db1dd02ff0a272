"""Makes faster embedders from sentence-transformers models.

`optimize` writes the same model as a graph for ONNX Runtime, `distill` a static model that only resembles it. Both
write a folder that `traceweir.streams.scoring.embedders.loading` loads. The libraries that this package needs are
extras.
"""
