"""Exit codes, and the errors that end a command with a message and an exit code instead of a traceback."""

from __future__ import annotations

FAILED = 1
"""Exit code: an operation failed, a record was unusable, or a threshold was missed."""
UNUSABLE = 2
"""Exit code: options, config, environment or a file of the user cannot be used."""
INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 plus the number of SIGINT."""

NO_DOCUMENT = "{}: contains no document; check that the file is the right one and is not empty"
"""Message for an input without documents, with its name."""


def exit_code(error: Exception) -> int | None:
    """Returns the exit code of an expected error; None for an unexpected error."""
    # Imported only after a failure: together these imports take half a second.
    from traceweir.scorers.evaluation.plan import ConfigError
    from traceweir.streams.comparison.bounds import UnknownMetricError
    from traceweir.streams.comparison.compare import NoOverlapError
    from traceweir.streams.config_topic import ConfigTopicError
    from traceweir.streams.dead_letters.reader import DeadLettersError
    from traceweir.streams.embedder_models.errors import ModelMakingError
    from traceweir.streams.emit import EmitError
    from traceweir.streams.endpoint.errors import EndpointError
    from traceweir.streams.errors import NotReadyError, WorkerError
    from traceweir.streams.evals.kafka_sessions import SessionsUnreadableError
    from traceweir.streams.export.errors import ExportError
    from traceweir.streams.formats.documents import InputError
    from traceweir.streams.gate.presidio import PresidioUnavailableError
    from traceweir.streams.judges.errors import JudgeUnavailableError
    from traceweir.streams.kafka.errors import KafkaUnreachableError, TopicsRefusedError
    from traceweir.streams.offline.block_file import TemporaryFileError
    from traceweir.streams.results.reader import ResultsError
    from traceweir.streams.scoring.embedders import EmbedderUnavailableError
    from traceweir.streams.scoring.process import ScoringProcessDiedError
    from traceweir.streams.settings import InvalidSettingsError
    from traceweir.streams.shadow.errors import ShadowError
    from traceweir.streams.store.errors import StoreError

    if isinstance(error, ConfigError | InvalidSettingsError | InputError | UnknownMetricError):
        return UNUSABLE
    failures = (
        ConfigTopicError,
        DeadLettersError,
        EmbedderUnavailableError,
        EmitError,
        EndpointError,
        ExportError,
        JudgeUnavailableError,
        KafkaUnreachableError,
        ModelMakingError,
        NoOverlapError,
        NotReadyError,
        PresidioUnavailableError,
        ResultsError,
        ScoringProcessDiedError,
        SessionsUnreadableError,
        ShadowError,
        StoreError,
        TemporaryFileError,
        TopicsRefusedError,
        WorkerError,
    )
    return FAILED if isinstance(error, failures) else None
