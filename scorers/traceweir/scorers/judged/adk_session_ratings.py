"""Defines the ratings of sessions that Google ADK asks of a service of Vertex AI: the configured judge decides here."""

from __future__ import annotations

from traceweir.scorers.judged.session_rating import SessionRating


class MultiTurnTaskSuccess(SessionRating):
    """Returns 1 if a judge finds that the user's goals were reached by the end of the session, else 0.

    The goals are the `task` and the `expected_outcome` of the session's reference, else what the user says. In Google
    ADK, a Vertex AI service measures `multi_turn_task_success_v1`. The values have the same meaning, and can differ.

    >>> MultiTurnTaskSuccess.level, MultiTurnTaskSuccess().judge_model_options.num_samples
    ('session', 5)
    """

    metric = template = "multi_turn_task_success_v1"
    adjective = "successful"
    needs = ("questions", "answers", "calls")


class MultiTurnTrajectoryQuality(SessionRating):
    """Returns 1 if a judge finds no bad step on the way to the user's goals, else 0.

    In Google ADK, a Vertex AI service measures `multi_turn_trajectory_quality_v1`. The values have the same meaning,
    and can differ.

    >>> MultiTurnTrajectoryQuality(judgeModelOptions={"numSamples": 3}).judge_model_options.num_samples
    3
    """

    metric = template = "multi_turn_trajectory_quality_v1"
    adjective = "free of bad steps"
    needs = ("questions", "answers", "calls")


class MultiTurnToolUseQuality(SessionRating):
    """Returns 1 if a judge finds every tool call of the session right and none missing, else 0.

    In Google ADK, a Vertex AI service measures `multi_turn_tool_use_quality_v1`. The values have the same meaning, and
    can differ.

    >>> MultiTurnToolUseQuality(judge_model_options={"judge_model": "openai/gpt-4o-mini"}).judge_model
    'openai/gpt-4o-mini'
    """

    metric = template = "multi_turn_tool_use_quality_v1"
    adjective = "right in its use of tools"
    needs = ("questions", "calls")
