"""Recognises names of persons, places and other entities with Microsoft Presidio and a language model of spaCy.

Both are an extra (`pip install '.[presidio]'`) and are imported only for a config with `gate.presidio`, because the import
takes seconds. Nothing here opens a connection: the model is loaded from this machine, and of Presidio's recognisers, the
one that downloads a list of domains stays out.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from traceweir.schemas.config import PresidioConfig
from traceweir.scorers.redaction.custom_patterns import pieces
from traceweir.scorers.redaction.entities import ENTITY_RANK, EntityFinder, NotSearchedError
from traceweir.scorers.redaction.hits import TOKEN, Hit

log = logging.getLogger(__name__)

INSTALL = "pip install '.[presidio]' in a clone of Traceweir"
_LABELS_BY_NAME = {
    "PERSON": ("PERSON", "PER", "PS", "persName"),
    "LOCATION": ("LOCATION", "LOC", "GPE", "FAC", "LC", "geogName", "placeName"),
    "ORGANIZATION": ("ORGANIZATION", "ORG", "OG", "orgName"),
    "NRP": ("NRP", "NORP"),
    "DATE_TIME": ("DATE_TIME", "DATE", "TIME", "DT", "TI"),
}
_NAMES = {label: name for name, labels in _LABELS_BY_NAME.items() for label in labels}
"""The labels of spaCy's models (https://spacy.io/models: English and most others, Korean, Polish), with Presidio's name."""
_LEFT_OUT = ("EmailRecognizer", "IbanRecognizer")
"""Presidio's recognisers of what the gate always removes: one downloads a list of domains, one logs the text."""
_PATTERN_TIMEOUT_S = "5"
"""Seconds for one pattern and one piece of a text. Presidio's patterns run on an engine that backtracks."""


class PresidioUnavailableError(RuntimeError):
    """Presidio or its model cannot be used; the message contains the reason and a solution."""


def load_entities(config: PresidioConfig | None) -> EntityFinder | None:
    """Returns what recognises the entities of a config; None if the config recognises none.

    Raises:
        PresidioUnavailableError: the extra or the model is not installed, or does not know an entity of the config.
    """
    return None if config is None else PresidioEntities(config)


def check_presidio(config: PresidioConfig | None) -> None:
    """Checks that the packages and the model of a config are installed, without loading them.

    Raises:
        PresidioUnavailableError: the extra or the model is not installed.
    """
    if config is None:
        return
    missing = [name for name in ("presidio_analyzer", "spacy") if importlib.util.find_spec(name) is None]
    if missing:
        raise PresidioUnavailableError(
            f"gate.presidio needs {' and '.join(missing)}: install the [presidio] extra with {INSTALL}, or remove "
            "gate.presidio from the config"
        )
    _model_folder(config.model)


class PresidioEntities:
    """Finds entities with Presidio, in pieces of up to 8,000 characters; an entity across two pieces can stay unseen.

    Args:
        config: The model and the entities.

    Raises:
        PresidioUnavailableError: the extra or the model is not installed, or does not know an entity of the config.
    """

    def __init__(self, config: PresidioConfig) -> None:
        check_presidio(config)
        folder = _model_folder(config.model)
        # Presidio reads it when it is imported.
        os.environ.setdefault("REGEX_TIMEOUT_SECONDS", _PATTERN_TIMEOUT_S)
        # Loading logs a warning for each recogniser of another language.
        _use_logger(_Silent)
        try:
            self._analyzer, self._language, versions = _analyzer(folder, config)
        except Exception as error:
            # The libraries and the file system raise errors of many types.
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise PresidioUnavailableError(
                f"gate.presidio.model: {config.model!r} could not be loaded: {reason} (install a version of the model that "
                f"fits the installed spaCy: {_download(config.model)})"
            ) from error
        known = sorted(self._analyzer.get_supported_entities(self._language))
        if unknown := [entity for entity in config.entities if entity not in known]:
            raise PresidioUnavailableError(
                f"gate.presidio.entities: Presidio with the model {config.model!r} does not know {', '.join(unknown)}; it "
                f"knows {', '.join(known)}"
            )
        self.max_chars = config.max_chars
        self._entities = config.entities
        self._threshold = config.score_threshold
        _use_logger(_Refusing)
        log.info("redacts %s with %s", ", ".join(config.entities), versions)

    def find(self, text: str) -> Sequence[Hit]:
        """Returns the entities in a text; the kind of an entity is its name in lower case.

        Existing tokens are no text: their characters are blank for the model.

        Raises:
            NotSearchedError: Presidio has skipped a part of the search.
        """
        text = TOKEN.sub(lambda found: " " * len(found[0]), text)
        hits = []
        start = 0
        for piece in pieces(text):
            if any(map(str.isalnum, piece)):
                hits += [hit._replace(start=hit.start + start, end=hit.end + start) for hit in self._find(piece)]
            start += len(piece)
        return hits

    def _find(self, piece: str) -> list[Hit]:
        found = self._analyzer.analyze(
            piece, language=self._language, entities=self._entities, score_threshold=self._threshold
        )
        return [Hit(one.start, one.end, ENTITY_RANK, one.entity_type.lower()) for one in found]


def _model_folder(model: str) -> Path:
    """Returns the folder of a model, without importing the package of the model and without downloading anything."""
    folder = Path(model)
    # False for a path that is too long, unlike the method of a Path.
    if os.path.isfile(folder / "config.cfg"):
        return folder
    package = None
    if model.isidentifier():
        # Raised for modules such as `__main__`.
        with suppress(ValueError):
            package = importlib.util.find_spec(model)
    for place in (package and package.submodule_search_locations) or ():
        for config in sorted(Path(place).glob("*/config.cfg")):
            return config.parent
    raise PresidioUnavailableError(
        f"gate.presidio.model: {model!r} is neither an installed spaCy model nor a folder with a config.cfg; Traceweir "
        f"downloads no model: {_download(model)}"
    )


def _download(model: str) -> str:
    name = model if model.isidentifier() else "en_core_web_sm"
    return f"run `python -m spacy download {name}` before the start, or name the folder of another model"


def _analyzer(folder: Path, config: PresidioConfig) -> tuple[Any, str, str]:
    """Returns Presidio's analyzer, the language of the model, and the versions of both for the log."""
    import presidio_analyzer
    import spacy
    from presidio_analyzer.nlp_engine import NerModelConfiguration, SpacyNlpEngine
    from presidio_analyzer.recognizer_registry import RecognizerRegistryProvider

    model = spacy.load(folder)
    language = model.lang
    engine = SpacyNlpEngine(
        [{"lang_code": language, "model_name": str(folder)}],
        NerModelConfiguration(**_ner_labels(model.pipe_labels, config.entities)),
    )
    # Otherwise `load` would download a model that it does not find.
    engine.nlp = {language: model}
    registry = RecognizerRegistryProvider(
        registry_configuration={"supported_languages": [language]}
    ).create_recognizer_registry()
    for name in _LEFT_OUT:
        if any(recognizer.name == name for recognizer in registry.recognizers):
            registry.remove_recognizer(name)
    if engine.ner_model_configuration.model_to_presidio_entity_mapping:
        registry.add_nlp_recognizer(engine)
    analyzer = presidio_analyzer.AnalyzerEngine(registry, engine, supported_languages=[language])
    presidio = importlib.metadata.version("presidio-analyzer")
    meta = model.meta
    return analyzer, language, f"Presidio {presidio} and {meta['lang']}_{meta['name']} {meta['version']}"


def _ner_labels(labels: Mapping[str, Sequence[str]], entities: Sequence[str]) -> dict[str, Any]:
    """Returns Presidio's names for the labels of a model's pipes. A label that is an entity of the config is its own name."""
    given = {label for pipe in labels.values() for label in pipe}
    names = {label: label if label in entities else _NAMES.get(label, "") for label in sorted(given)}
    return {
        "model_to_presidio_entity_mapping": {label: name for label, name in names.items() if name},
        "labels_to_ignore": [label for label, name in names.items() if not name],
    }


class _Silent(logging.Logger):
    """Logs nothing, because Presidio's messages can quote texts of agents."""

    def handle(self, record: logging.LogRecord) -> None:
        """Drops the message."""


class _Refusing(logging.Logger):
    """Turns a warning into an error of the search: Presidio only logs that a pattern took too long and was skipped."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 # the name of logging
        """Returns whether the level is a warning or above, whatever the program configures or disables."""
        return level >= logging.WARNING

    def handle(self, record: logging.LogRecord) -> None:
        """Raises NotSearchedError."""
        raise NotSearchedError("presidio_failed")


def _use_logger(kind: type[logging.Logger]) -> None:
    """Lets Presidio log to a logger of this class. Its handlers, levels and `logging.disable` have no effect then."""
    logging.getLogger("presidio-analyzer").__class__ = kind
