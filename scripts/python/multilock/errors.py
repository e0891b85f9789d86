"""Exceptions of multilock. All of them are subclasses of Error."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Base class of all exceptions of multilock.

    The message states what happened, why, and what to do.

    Attributes:
        code: The exit code of the multilock program; see ``multilock help exit-codes``.
    """

    code: int

    def __init__(self, message: str, code: int = 125) -> None:
        super().__init__(message)
        self.code = code


class Held(Error):
    """Another holder, which counts as alive, has the lock. The message names it."""


class Lost(Error):
    """The lock was lost while it was held. Another process may hold it by now."""


class Unknown(Error):
    """It is unknown whether the lock is held, or whether a result was recorded."""


class TimedOut(Error, TimeoutError):
    """A time limit passed."""


class Failed(Error):
    """A job failed.

    Attributes:
        result: The Result of ``run_once`` or the Barrier of ``wait``; None for an item of ``map``.
    """

    result: Any

    def __init__(self, message: str, code: int, result: Any) -> None:
        super().__init__(message, code)
        self.result = result
