"""Asks language models on behalf of judged criteria: client, budget, rate limits, circuit breaker, cached verdicts.

This package imports no stage. Begin with `service`, which answers one question of a criterion; `service` uses the
other modules.
"""
