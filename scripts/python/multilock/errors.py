"""What can go wrong. The program's exit codes become these."""

from __future__ import annotations

import json
from typing import Any


class Error(Exception):
    """multilock could not do what it was asked for; the message says why, and what to do."""

    code: int
    """The program's exit code; see ``multilock help exit-codes``."""

    def __init__(self, message: str, code: int = 125) -> None:
        super().__init__(message)
        self.code = code


class Held(Error):
    """Somebody else has the lock, and counts as alive."""


class Lost(Error):
    """The lock was lost while it was held: somebody else may have it."""


class Unknown(Error):
    """It could not be learned whether the lock is held, or whether a result was recorded."""


class TimedOut(Error, TimeoutError):
    """The time limit passed."""


class Failed(Error):
    """A job has failed; ``result`` is the Result or the Barrier that says how."""

    result: Any

    def __init__(self, message: str, code: int, result: Any) -> None:
        super().__init__(message, code)
        self.result = result


_KINDS = {120: Held, 121: Held, 122: Lost, 123: Unknown, 124: TimedOut}


def of(code: int, told: str) -> Error:
    """The error that an exit code of the program stands for; told is its standard error."""
    lines = [_message(line) for line in told.splitlines()]
    return _KINDS.get(code, Error)("\n".join(lines).strip() or f"multilock ended with code {code}; if it said why, that is on the standard error", code)


def _message(line: str) -> str:
    return str(parsed(line).get("message", line))


def parsed(line: str) -> dict[str, Any]:
    """With --json each line is an object; empty for anything else."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
