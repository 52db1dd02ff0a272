"""Rights of users on Apache Kafka: what tests allow and deny.

From the first rule for a resource on, it is closed to all operations that no rule allows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactionalId": ResourceType.TRANSACTIONAL_ID,
}
PATTERNS = {"literal": ResourcePatternType.LITERAL, "prefix": ResourcePatternType.PREFIXED}
OPERATIONS = {
    "Create": AclOperation.CREATE,
    "Delete": AclOperation.DELETE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
}


class Right(NamedTuple):
    """An operation on a resource, in the words of Strimzi's KafkaUser."""

    type: str
    """What the resource is."""
    name: str
    """Its name, or what its name begins with."""
    operation: str
    """What is done with it."""
    pattern: str = "literal"
    """`literal` or `prefix`."""


def allow(kafka: str, user: str, rights: Iterable[Right]) -> None:
    """Allows a user these operations, on the cluster at the address `kafka`."""
    _set(kafka, user, rights, AclPermissionType.ALLOW)


def deny(kafka: str, user: str, rights: Iterable[Right]) -> None:
    """Denies a user these operations, on the cluster at the address `kafka`."""
    _set(kafka, user, rights, AclPermissionType.DENY)


def _set(kafka: str, user: str, rights: Iterable[Right], permission: AclPermissionType) -> None:
    admin = AdminClient({"bootstrap.servers": kafka, "log_level": 0})
    rules = [
        AclBinding(
            TYPES[right.type],
            right.name,
            PATTERNS[right.pattern],
            f"User:{user}",
            "*",
            OPERATIONS[right.operation],
            permission,
        )
        for right in rights
    ]
    for done in admin.create_acls(rules).values():
        done.result()
