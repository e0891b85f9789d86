"""Locks with the interface of the package ``filelock``, for programs that expect one.

``FileLock(path)`` takes the lock ``NAME`` of the directory that ``path`` lies in. On a shared filesystem
it excludes other hosts, where ``flock`` may be local, and a killed holder's lock is taken over.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional

import filelock

from . import errors
from .lock import Lock


class FileLock(filelock.BaseFileLock):
    """A drop-in for ``filelock.FileLock``: reentrant, with timeout and poll_interval as there."""

    _multilock: Optional[Lock] = None

    def _acquire(self) -> None:
        """One attempt; the base class repeats it."""
        path = Path(os.path.abspath(self.lock_file))
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = Lock(path.name, dir=path.parent, wait=0)
        try:
            lock.acquire()
        except errors.Held:
            return
        self._multilock = lock
        self._descriptor(os.open(os.devnull, os.O_RDONLY))

    def _release(self) -> None:
        os.close(self._descriptor(None))
        lock, self._multilock = self._multilock, None
        if lock is not None:
            lock.release()

    def _descriptor(self, fd: Optional[int]) -> Any:
        """The base class takes a descriptor for held; where it keeps that changed with version 3.11. Returns the old one."""
        keeper, name = (self._context, "lock_file_fd") if hasattr(self, "_context") else (self, "_lock_file_fd")
        old = getattr(keeper, name)
        setattr(keeper, name, fd)
        return old


def replace() -> Any:
    """Makes ``filelock.FileLock`` this one, for libraries that are imported later; returns the old one."""
    old, module = filelock.FileLock, filelock  # by another name, or a type checker takes it for a definition
    setattr(module, "FileLock", FileLock)
    return old
