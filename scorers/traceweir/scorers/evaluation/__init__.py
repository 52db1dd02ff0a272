"""From a config to scores: the registry of metrics, the plan, the runner, and the one decision against a threshold.

It knows scorers by their contract, and no clock, network or Kafka. Begin with `plan`; `runner` measures a session
by it, `decision` decides.
"""
