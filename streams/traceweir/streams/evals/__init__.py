"""Eval sets against recorded sessions, without Kafka: `evaluate.py` has what is called from Python. The agent is never run."""
