"""Locks with the interface of the package ``filelock``.

``FileLock("/shared/x.lock")`` acquires the lock ``x.lock`` of the directory ``/shared``. Unlike ``flock`` it
always excludes other hosts of a shared filesystem, and the lock of a killed holder is taken over.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional

import filelock

from . import errors
from .lock import Lock


class FileLock(filelock.BaseFileLock):
    """A drop-in replacement for ``filelock.FileLock``, with the same parameters. It is reentrant."""

    _multilock: Optional[Lock] = None

    def _acquire(self) -> None:
        """Try once to acquire the lock. The base class retries until its timeout."""
        path = Path(os.path.abspath(self.lock_file))
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = Lock(path.name, dir=path.parent, wait=0)
        try:
            lock.acquire()
        except errors.Held:
            return
        self._multilock = lock
        self._swap_descriptor(os.open(os.devnull, os.O_RDONLY))

    def _release(self) -> None:
        os.close(self._swap_descriptor(None))
        lock, self._multilock = self._multilock, None
        if lock is not None:
            lock.release()

    def _swap_descriptor(self, fd: Optional[int]) -> Any:
        """Replace the descriptor by which the base class knows that the lock is held, and return the old one."""
        # filelock 3.11 moved it into the attribute _context.
        owner, name = (self._context, "lock_file_fd") if hasattr(self, "_context") else (self, "_lock_file_fd")
        old = getattr(owner, name)
        setattr(owner, name, fd)
        return old


def replace() -> Any:
    """Replace ``filelock.FileLock`` by this class, for libraries that are imported later.

    Returns:
        The class that was replaced.
    """
    # An alias, because type checkers take an assignment to filelock.FileLock for a definition.
    old, module = filelock.FileLock, filelock
    setattr(module, "FileLock", FileLock)
    return old
