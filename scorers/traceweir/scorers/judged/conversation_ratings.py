"""Defines the ratings of sessions under the names that users of MLflow 3 know; the prompts are Traceweir's own."""

from __future__ import annotations

from traceweir.scorers.base import NeededReference, Subject
from traceweir.scorers.judged.guidelines import Guidelines, applied_guidelines, needed_guidelines
from traceweir.scorers.judged.session_rating import ConversationRating


class ConversationCompleteness(ConversationRating):
    """Returns 1 if the agent has dealt with every request of the user by the end of the session, else 0.

    >>> ConversationCompleteness().judge_model_options.num_samples
    1
    """

    metric = template = "conversation_completeness"
    adjective = "complete"
    needs = ("questions", "answers")


class UserFrustration(ConversationRating):
    """Returns 1 if the user shows no frustration, or it has passed at the end of the session, and 0 if it has not passed.

    The category of the Score is `none`, `resolved` or `unresolved`, the values that MLflow returns.

    >>> UserFrustration.categories["resolved"], UserFrustration.categories["unresolved"]
    (True, False)
    """

    metric = template = "user_frustration"
    adjective = "free of unresolved frustration"
    needs = ("questions",)
    categories = {"unresolved": False, "resolved": True, "none": True}


class KnowledgeRetention(ConversationRating):
    """Returns 1 if no answer of the agent contradicts, distorts or forgets what the user said in an earlier turn, else 0.

    One question covers all turns; MLflow asks a question for each turn.

    >>> KnowledgeRetention(judgeModelOptions={"numSamples": 3}).judge_model_options.num_samples
    3
    """

    metric = template = "knowledge_retention"
    adjective = "consistent with what the user said before"
    needs = ("questions", "answers")


class ConversationalSafety(ConversationRating):
    """Returns 1 if all answers of the agent comply with the policy of `safety_v1`, else 0.

    >>> ConversationalSafety.level
    'session'
    """

    metric = template = "conversational_safety"
    adjective = "safe"
    needs = ("answers",)


class ConversationalGuidelines(ConversationRating):
    """Returns 1 if every answer of the agent keeps to all guidelines that apply, also if none applies, else 0.

    The guidelines are those of the criterion, and those of the references of the session's invocations.

    >>> ConversationalGuidelines(guidelines="The agent is polite.").guidelines
    ['The agent is polite.']
    """

    metric = template = "conversational_guidelines"
    adjective = "in line with the guidelines"
    needs = ("answers",)
    guidelines: Guidelines = []
    """Guidelines for every session, in addition to those of the references; a text is a single guideline."""

    @property
    def needed_reference(self) -> NeededReference | None:
        """The guidelines, if the criterion has none."""
        return needed_guidelines(self.guidelines)

    def prompt_data(self, subject: Subject) -> dict[str, str]:
        """Returns the texts with the guidelines.

        Raises:
            MissingInput: there are no guidelines.
        """
        return super().prompt_data(subject) | {"guidelines": applied_guidelines(self.guidelines, subject.reference)}


class ConversationalRoleAdherence(ConversationRating):
    """Returns 1 if no answer of the agent leaves the role that the developer's instructions give it, else 0.

    Without instructions in the record there is no value; MLflow then judges the role that the agent seems to have.

    >>> ConversationalRoleAdherence.needs
    ('answers', 'instructions')
    """

    metric = template = "conversational_role_adherence"
    adjective = "true to the role of the agent"
    needs = ("answers", "instructions")


class ConversationalToolCallEfficiency(ConversationRating):
    """Returns 1 if no tool call of the session is wasted, also if there is none, else 0.

    >>> ConversationalToolCallEfficiency.needs
    ('questions', 'calls')
    """

    metric = template = "conversational_tool_call_efficiency"
    adjective = "efficient in its tool calls"
    needs = ("questions", "calls")
