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
    from traceweir.scorers.evaluation.config_problems import ConfigError
    from traceweir.streams.base.errors import InvalidSettingsError, NotReadyError, WorkerError
    from traceweir.streams.board.store.errors import StoreError
    from traceweir.streams.intake.formats.documents import InputError
    from traceweir.streams.lab.comparison.bounds import UnknownMetricError
    from traceweir.streams.lab.comparison.compare import NoOverlapError
    from traceweir.streams.lab.evals.kafka_sessions import SessionsUnreadableError
    from traceweir.streams.lab.shadow.errors import ShadowError
    from traceweir.streams.pipeline.gate.presidio import PresidioUnavailableError
    from traceweir.streams.scoring.embedders.loading import EmbedderUnavailableError
    from traceweir.streams.scoring.embedders.making.errors import ModelMakingError
    from traceweir.streams.scoring.isolation.process import ScoringProcessDiedError
    from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
    from traceweir.streams.tools.alerts.state_topic import AlertsError
    from traceweir.streams.tools.anchors.topics import AnchorsError
    from traceweir.streams.tools.dead_letters.reader import DeadLettersError
    from traceweir.streams.tools.emit import EmitError
    from traceweir.streams.tools.endpoint.errors import EndpointError
    from traceweir.streams.tools.export.errors import ExportError
    from traceweir.streams.tools.labels.topic import LabelsError
    from traceweir.streams.tools.offline.block_file import TemporaryFileError
    from traceweir.streams.tools.results.reader import ResultsError
    from traceweir.streams.worker.config_topic import ConfigTopicError
    from traceweir.streams.worker.kafka.errors import KafkaUnreachableError, TopicsRefusedError

    if isinstance(error, ConfigError | InvalidSettingsError | InputError | UnknownMetricError):
        return UNUSABLE
    failures = (
        AlertsError,
        AnchorsError,
        ConfigTopicError,
        DeadLettersError,
        EmbedderUnavailableError,
        EmitError,
        EndpointError,
        ExportError,
        JudgeUnavailableError,
        KafkaUnreachableError,
        LabelsError,
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
