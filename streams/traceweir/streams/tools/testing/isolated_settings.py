"""Defines settings that the environment does not change."""

from __future__ import annotations

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from traceweir.streams.base.settings import Settings


class IsolatedSettings(Settings):
    """Contains the documented defaults and the changes of the test; the environment has no effect."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Returns the arguments of the constructor as the only source of settings."""
        return (init_settings,)
