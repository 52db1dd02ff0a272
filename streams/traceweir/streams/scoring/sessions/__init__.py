"""Scores a session: measures its criteria, embeds its traces, and makes candidates.

Knows scorers, judges, configs and embedders, and not in which process it runs. Begin with `session_scoring`;
`config_scoring` chooses the config of a session, and `errors` says why a session has no scores.
"""
