"""ApiError: a call that gets an error reply, in OpenAI's form."""

from __future__ import annotations

from starlette.responses import JSONResponse

_KINDS = {
    400: "invalid_request_error",
    404: "not_found_error",
    413: "invalid_request_error",
    405: "invalid_request_error",
}


class ApiError(Exception):
    """A call that can't be answered as asked. The message says why, and what would do."""

    def __init__(self, message: str, *, status: int = 400, param: str | None = None) -> None:
        """Make the error.

        Args:
            message: what happened, with which values, and the cure.
            status: HTTP status, 4xx or 5xx.
            param: the field at fault.
        """
        super().__init__(message)
        self.message = message
        self.status = status
        self.param = param


def reply(error: ApiError) -> JSONResponse:
    """The reply that says it."""
    body = {
        "message": error.message,
        "type": _KINDS.get(error.status, "server_error"),
        "param": error.param,
        "code": error.status,
    }
    return JSONResponse({"error": body}, status_code=error.status)
