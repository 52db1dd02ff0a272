"""The demo: simulated agents, the whole path on the embedded broker, and a count of what must come out.

It may import every other package but `cli`, and prints nothing: `traceweir.streams.cli.demo` shows it. Begin with
`play`; `ledger` computes the expected counts without the worker.
"""
