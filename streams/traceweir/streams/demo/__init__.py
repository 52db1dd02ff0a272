"""Runs the demo: simulated agents, the whole pipeline on the embedded broker, and a comparison with expected counts.

This package can import every other package except `cli`. It prints nothing; `traceweir.streams.cli.demo` displays the
demo. Start with `play`; `ledger` computes the expected counts without the worker.
"""
