"""Signs tokens for Amazon MSK with the AWS credentials of this process."""

from __future__ import annotations

import os

from traceweir.streams.worker.kafka.errors import TokenError


def token() -> tuple[str, float]:
    """Returns a token of 15 minutes, and its end in seconds since 1970.

    The credentials are those that boto3 finds: in variables, in a profile, or of the role of the machine or the pod.

    Raises:
        TokenError: the signer is not installed, the region is not set, or there are no credentials.
    """
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError:
        raise TokenError(
            "TRACEWEIR_KAFKA_OAUTH_PROVIDER=msk_iam needs Amazon's signer, which is not installed: pip install 'traceweir[msk]'"
        ) from None
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise TokenError(
            "TRACEWEIR_KAFKA_OAUTH_PROVIDER=msk_iam needs the region of the MSK cluster: set AWS_REGION, for example to "
            "eu-central-1"
        )
    try:
        value, expires_at_ms = MSKAuthTokenProvider.generate_auth_token(region)
    except AttributeError:
        # Without credentials, the signer reads an attribute of None.
        raise TokenError(
            "TRACEWEIR_KAFKA_OAUTH_PROVIDER=msk_iam found no AWS credentials: give the pod or the machine a role, or set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from None
    return value, expires_at_ms / 1000
