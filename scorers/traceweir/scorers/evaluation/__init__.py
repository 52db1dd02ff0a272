"""Turns a config into Scores: the registry of metrics, the plan, the runner, and the decisions against thresholds.

The package uses scorers through their contract, and no clock, network or Kafka. Start reading with `plan`; `runner`
measures a session according to a plan, and `decision` contains the gate's decision.
"""
