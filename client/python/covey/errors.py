# SPDX-License-Identifier: Apache-2.0
"""Exceptions. The text is one sentence that names what failed, where, and what to do next."""

from __future__ import annotations

import covey._native as _native


class CoveyError(RuntimeError):
    """The base of all errors of Covey.

    Attributes:
        code: the name of the code, for example "NOT_FOUND"; docs/PROTOCOL.md explains each.
        message: the text.
        retryable: whether the same call may succeed later.
    """

    code = "UNKNOWN"
    retryable = False

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class Cancelled(CoveyError):
    """Asked to leave (a drain), or closed first. A drained program should end with success."""

    code = "CANCELLED"


class InvalidArgument(CoveyError, ValueError):
    """A mistake of the caller."""

    code = "INVALID_ARGUMENT"


class DeadlineExceeded(CoveyError, TimeoutError):
    """The time has passed. It is unknown whether a push was applied."""

    code = "DEADLINE_EXCEEDED"


class NotFound(CoveyError, LookupError):
    """There is nothing of that name."""

    code = "NOT_FOUND"


class AlreadyExists(CoveyError):
    """A table of that name exists with another definition, or a rank is taken."""

    code = "ALREADY_EXISTS"


class ResourceExhausted(CoveyError):
    """A limit was reached; slow down, then retry."""

    code = "RESOURCE_EXHAUSTED"
    retryable = True


class FailedPrecondition(CoveyError):
    """The object is closed, belongs to another process, or the group has re-formed."""

    code = "FAILED_PRECONDITION"


class Aborted(CoveyError):
    """This process was declared dead or replaced; end it."""

    code = "ABORTED"


class OutOfRange(CoveyError):
    """What has changed since a resume token is not known any more: read all rows again, into an
    empty copy."""

    code = "OUT_OF_RANGE"


class Internal(CoveyError):
    """A bug of Covey; report it."""

    code = "INTERNAL"


class Unavailable(CoveyError, ConnectionError):
    """A peer cannot be reached, or a member of the group has died."""

    code = "UNAVAILABLE"
    retryable = True


class DataLoss(CoveyError):
    """Pushes or bytes were lost."""

    code = "DATA_LOSS"


class PermissionDenied(CoveyError, PermissionError):
    """The certificate of this process does not allow what it asked for."""

    code = "PERMISSION_DENIED"


class Unauthenticated(CoveyError):
    """The certificate of this process has expired since it connected, or was revoked."""

    code = "UNAUTHENTICATED"


_BY_NUMBER = {1: Cancelled, 3: InvalidArgument, 4: DeadlineExceeded, 5: NotFound, 6: AlreadyExists,
              7: PermissionDenied, 8: ResourceExhausted, 9: FailedPrecondition, 10: Aborted,
              11: OutOfRange, 13: Internal,
              14: Unavailable, 15: DataLoss, 16: Unauthenticated}


def _exception(number: int, message: str) -> CoveyError:
    return _BY_NUMBER.get(number, CoveyError)(message)


_native.set_errors(_exception)
