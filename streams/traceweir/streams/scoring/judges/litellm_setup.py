"""Loads litellm, which has a client for each provider, so that it logs nothing and downloads nothing.

litellm is an extra (`pip install '.[judge]'`) and is imported only when a criterion asks a judge, because the import
takes seconds.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import warnings
from functools import lru_cache
from typing import Any

from traceweir.streams.base.process_setup import paused_gc
from traceweir.streams.scoring.judges.errors import JudgeUnavailableError
from traceweir.streams.scoring.judges.http_limits import install_http_limits

JUDGE_PACKAGES = ("litellm", "tenacity", "aiolimiter")
"""The packages of the [judge] extra, as they are imported."""
INSTALL = "pip install '.[judge]' in a clone of Traceweir"


def check_judge() -> None:
    """Checks that the packages of the [judge] extra are installed.

    Raises:
        JudgeUnavailableError: a package is missing.
    """
    missing = [name for name in JUDGE_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise JudgeUnavailableError(
            f"a criterion of the evaluation config asks a judge, which needs {', '.join(missing)}: install it with "
            f'{INSTALL}, or remove the criterion from the config (those of agent_evaluation with "judged": false)'
        )


@lru_cache(maxsize=1)
def load_litellm() -> Any:
    """Returns the litellm module, configured to log nothing and to download nothing.

    Raises:
        JudgeUnavailableError: litellm is not installed.
    """
    check_judge()
    # Otherwise the import downloads a price list.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # Otherwise litellm reads `.env` of the working directory.
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    # OpenAI's API through the client that serves all other providers: with OpenAI's own client a question takes 1.3 times
    # the CPU time.
    os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "True")
    # Collections take a tenth of the time of this import.
    with warnings.catch_warnings(), paused_gc():
        warnings.simplefilter("ignore")
        import litellm
    install_http_limits()
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    # Leaves out the options that a provider does not support.
    litellm.drop_params = True
    # Otherwise a count of tokens downloads the tokenizer of some models.
    litellm.disable_hf_tokenizer_download = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "httpx", "httpcore", "openai"):
        # These loggers quote requests with their API keys.
        quiet = logging.getLogger(name)
        quiet.setLevel(logging.CRITICAL + 1)
        quiet.propagate = False
    return litellm


def ignore_litellms_warnings() -> None:
    """Ignores the warnings about litellm's own types, which any question can raise."""
    warnings.filterwarnings("ignore", message="Item .* on TypedDict class|Pydantic serializer warnings")
