"""The error tree of the package: every stage raises from here, callers catch by meaning."""

from __future__ import annotations


class SupervisorOperatorError(Exception):
    """Whatever this package raises on purpose."""


class QueueClosedError(SupervisorOperatorError):
    """The work queue is closed: the worker may end."""


class LeadershipLostError(SupervisorOperatorError):
    """Our lease ran out or is another's: nothing may be written any more."""


class ClusterError(SupervisorOperatorError):
    """The API server refused, or could not be reached (then without a status).

    `causes` are the fields that it names, each with its words.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str = "",
        retry_after: float | None = None,
        causes: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.causes = causes
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class InvalidError(ClusterError):
    """400 or 422: the object itself is wrong; asking again changes nothing."""


class UnauthorizedError(ClusterError):
    """401: our credentials are not accepted."""


class ForbiddenError(ClusterError):
    """403: RBAC, quota or admission says no."""


class NotFoundError(ClusterError):
    """404."""


class ConflictError(ClusterError):
    """409: it exists already, or somebody wrote in between; look again."""


class GoneError(ClusterError):
    """410: that resourceVersion is forgotten; list anew."""


class TransientError(ClusterError):
    """429, 5xx, a cut or silent connection: the same request may succeed later."""


_BY_STATUS: dict[int, type[ClusterError]] = {
    400: InvalidError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TransientError,
}
_SERVER_ERROR = 500


def cluster_error(
    status: int,
    message: str,
    *,
    reason: str = "",
    retry_after: float | None = None,
    causes: tuple[tuple[str, str], ...] = (),
) -> ClusterError:
    """The error that an HTTP status of the API server means."""
    other = TransientError if status >= _SERVER_ERROR else ClusterError
    kind = _BY_STATUS.get(status, other)
    return kind(message, status=status, reason=reason, retry_after=retry_after, causes=causes)
