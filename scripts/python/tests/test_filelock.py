from __future__ import annotations

from pathlib import Path

import pytest

import multilock

pytest.importorskip("filelock")

from filelock import Timeout  # noqa: E402

from multilock.filelock import FileLock  # noqa: E402


def test_it_is_reentrant_like_filelock(shared: Path) -> None:
    lock = FileLock(shared / "cache" / "x.lock")
    with lock, lock:
        assert lock.is_locked
    assert not lock.is_locked


def test_it_excludes_other_locks(shared: Path) -> None:
    path = shared / "x.lock"
    with FileLock(path):
        with pytest.raises(Timeout):
            FileLock(path).acquire(timeout=0.2, poll_interval=0.05)
        with pytest.raises(multilock.Held):
            multilock.Lock("x.lock", dir=shared, wait=0).acquire()
    FileLock(path).acquire(timeout=10)
