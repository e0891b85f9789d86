"""Locks and jobs for hosts that share nothing but a filesystem, usually NFS.

    with multilock.Lock("nightly", dir="/shared") as lock:
        ...                                  # one process of one host is here at a time

A lock is renewed by a keeper, a small process beside this one, while this process lives. If this
process dies, however it dies, the lock is given back; if the host dies, others take it over when
it has been silent for ``ttl``. Everything is done by the ``multilock`` program, which the wheel
brings along, so locks of Python, of shell scripts and of Go programs exclude each other.
"""

from ._program import program, version
from .errors import Error, Failed, Held, Lost, TimedOut, Unknown
from .jobs import Barrier, Batch, Result, batch, run_once, wait
from .lock import AsyncLock, Lock
from .mapping import map, results

__all__ = [
    "AsyncLock",
    "Barrier",
    "Batch",
    "Error",
    "Failed",
    "Held",
    "Lock",
    "Lost",
    "Result",
    "TimedOut",
    "Unknown",
    "batch",
    "map",
    "program",
    "results",
    "run_once",
    "version",
    "wait",
]
