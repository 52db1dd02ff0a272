"""Which errors are the user's business: they end a command with a message and an exit code, never with a traceback."""

from __future__ import annotations

FAILED = 1
"""Something could not be done, a record was unusable, or a threshold was missed."""
UNUSABLE = 2
"""What the user gave cannot be used: options, config, environment or a file."""
INTERRUPTED = 130
"""Ctrl-C, as shells count it."""


def exit_code(error: Exception) -> int | None:
    """The exit code for an error that speaks for itself; None for one that nobody foresaw."""
    # Only here, where something went wrong: together these imports take half a second.
    from traceweir.scorers.evaluation.plan import ConfigError
    from traceweir.streams.dead_letters.reader import DeadLettersError
    from traceweir.streams.emit import EmitError
    from traceweir.streams.errors import WorkerFailure
    from traceweir.streams.evals.kafka_sessions import SessionsUnreadable
    from traceweir.streams.formats.documents import InputError
    from traceweir.streams.judges.errors import JudgeUnavailable
    from traceweir.streams.kafka.topic_admin import KafkaUnreachable
    from traceweir.streams.scoring.embedders import EmbedderUnavailable
    from traceweir.streams.scoring.process import ScoringProcessDied
    from traceweir.streams.settings import InvalidSettingsError
    from traceweir.streams.worker import NotReadyError

    if isinstance(error, ConfigError | InvalidSettingsError | InputError):
        return UNUSABLE
    failures = (
        DeadLettersError,
        EmbedderUnavailable,
        EmitError,
        JudgeUnavailable,
        KafkaUnreachable,
        NotReadyError,
        ScoringProcessDied,
        SessionsUnreadable,
        WorkerFailure,
    )
    return FAILED if isinstance(error, failures) else None
