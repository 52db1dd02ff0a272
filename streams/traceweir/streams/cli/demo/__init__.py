"""Runs the demo: simulated agents, the whole pipeline on the embedded broker, and a comparison with expected counts.

`commands` and `view` display the demo; nothing else here prints. Start with `play`; `ledger` has the expected counts.
"""
