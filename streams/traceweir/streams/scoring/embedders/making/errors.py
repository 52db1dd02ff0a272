"""Why an embedder was not made."""


class ModelMakingError(RuntimeError):
    """A model cannot be read or made, or its folder cannot be written; the message has the way out."""
