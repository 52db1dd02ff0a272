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
    from traceweir.streams.errors import WorkerError
    from traceweir.streams.evals.kafka_sessions import SessionsUnreadableError
    from traceweir.streams.formats.documents import InputError
    from traceweir.streams.judges.errors import JudgeUnavailableError
    from traceweir.streams.kafka.topic_admin import KafkaUnreachableError
    from traceweir.streams.scoring.embedders import EmbedderUnavailableError
    from traceweir.streams.scoring.process import ScoringProcessDiedError
    from traceweir.streams.settings import InvalidSettingsError
    from traceweir.streams.worker import NotReadyError

    if isinstance(error, ConfigError | InvalidSettingsError | InputError):
        return UNUSABLE
    failures = (
        DeadLettersError,
        EmbedderUnavailableError,
        EmitError,
        JudgeUnavailableError,
        KafkaUnreachableError,
        NotReadyError,
        ScoringProcessDiedError,
        SessionsUnreadableError,
        WorkerError,
    )
    return FAILED if isinstance(error, failures) else None
