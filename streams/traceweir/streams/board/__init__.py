"""Shows results: a database of what the output topics contain, and the dashboard that answers from it.

May know `lab`, `tools` and what they know, except the stages. Begin with `store.opening`, and with `dashboard.server`.
"""
