"""Contains the three stages, the code that runs them on Faust and Kafka, and the command line.

This package imports `traceweir.scorers` and `traceweir.schemas`; neither of them imports this package. Three files
define the product: `assemble/stage.py`, `score/stage.py` and `gate/stage.py`. `topology.py` builds the stages, and
`app.py` builds a worker from them.
"""
