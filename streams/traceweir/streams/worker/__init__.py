"""Runs the stages on Kafka: clients and Faust, lanes and checkpoints, metrics, the process.

May know `pipeline`, `scoring` and `base`. Other wings use its `kafka` and `runtime`, but only `cli` and `lab.shadow` start
a worker. Begin with `app`, which builds a worker; `runtime.checkpoint` shows how its work becomes visible.
"""
