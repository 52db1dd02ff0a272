"""Kafka in, Kafka out: the three stages, what runs them on Faust and Kafka, and the command line.

It may use `traceweir.scorers` and `traceweir.schemas`, and neither of them knows it. The product is told in three
files: `assemble/stage.py`, `score/stage.py` and `gate/stage.py`; `topology.py` builds them, and `app.py` puts a worker
together from them.
"""
