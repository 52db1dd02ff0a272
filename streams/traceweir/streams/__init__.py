"""Contains the stages, the code that runs them on Kafka, and everything around them, in nine wings.

This package imports `traceweir.scorers` and `traceweir.schemas`; neither of them imports this package. The wings build
on each other in this order: `base`, `intake` and `scoring`, `pipeline`, `worker`, `tools`, `lab`, `board`, `cli`. Three
files define the product: `pipeline/assemble/stage.py`, `pipeline/score/stage.py` and `pipeline/gate/stage.py`.
`pipeline/topology.py` builds the stages, and `worker/app.py` builds a worker from them.

`evals`, `formats`, `offline`, `pytest_plugin`, `spans` and `testing` are import paths of users (docs/public-api.md).
Nothing in Traceweir imports them.
"""
