"""The demo: simulated agents, the whole path on the embedded broker, and a count of what must come out.

It knows everything, and nothing knows it but the command line. Begin with `run`; `ledger` computes the expected
counts without the worker.
"""
