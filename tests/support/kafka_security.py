"""Creates certificates of a test authority, and defines users, for logins by TLS and by password."""

from __future__ import annotations

from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

USER, PASSWORD = "traceweir", "correct-horse-9c41"
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
USERS = {"SCRAM-SHA-256": USER, "SCRAM-SHA-512": f"{USER}-512"}
"""The user of each mechanism; no other mechanism knows this user."""


class Certificates:
    """Writes an authority, a certificate of the nodes and a client certificate as PEM files."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.authority = folder / "authority.pem"
        self.nodes = folder / "nodes.pem"
        self.client, self.client_key = folder / "client.pem", folder / "client-key.pem"
        authority.cert_pem.write_to_path(str(self.authority))
        nodes = authority.issue_cert("127.0.0.1", "localhost")
        self.nodes.write_bytes(_pkcs8(nodes.private_key_pem.bytes()) + _chain(nodes))
        client = authority.issue_cert("client@example.org")
        self.client.write_bytes(_chain(client))
        self.client_key.write_bytes(_pkcs8(client.private_key_pem.bytes()))


def _chain(certificate: trustme.LeafCert) -> bytes:
    return b"".join(blob.bytes() for blob in certificate.cert_chain_pems)


def _pkcs8(key: bytes) -> bytes:
    """Returns the key in PKCS #8, the only form that Kafka reads."""
    loaded = load_pem_private_key(key, None)
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
