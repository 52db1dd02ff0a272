"""The settings of a process by subject, each with the checks of its own values; `settings` joins them.

Knows nothing else of Traceweir but topics, the log and schemas. Begin with `group`, the base of all groups.
"""
