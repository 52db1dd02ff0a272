"""Everything between a judged criterion and a language model: client, budget, rate limits, circuit breaker, remembered verdicts.

It knows no stage. Begin with `service`, which answers one question of a criterion; the other modules are what it
consults on the way.
"""
