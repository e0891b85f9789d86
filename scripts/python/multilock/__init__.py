"""Locks and jobs for hosts that share only a filesystem, usually NFS.

    with multilock.Lock("nightly", dir="/shared") as lock:
        ...                       # one process at a time, across all hosts

Locks:
    Lock, AsyncLock: Hold a lock for a ``with`` or an ``async with`` statement.
    multilock.filelock.FileLock: A replacement for ``filelock.FileLock``.

Jobs:
    run_once: Run a job once across all hosts, or once per period.
    batch: Run a list of commands together with other hosts.
    map: Call a function with each of many items, together with other hosts.
    results: Read the values of ``map``.
    wait: Wait until the jobs of a group have ended.

Exceptions: Error, with the subclasses Held, TimedOut, Lost, Failed and Unknown.

All functions take the location of the locks: ``dir``, the shared directory, or ``source``, the URL of a
server (see ``multilock help sources``); ``group``, a group of locks in it; and ``trust``, users to trust
beside root and yourself, separated by commas, or "any". The defaults are the environment variables
MULTILOCK_DIR, MULTILOCK_SOURCE, MULTILOCK_GROUP and MULTILOCK_TRUST. A duration is a number of seconds, or a
string such as "90s", "5m" or "1d".

A keeper, a small process beside this one, renews a lock while this process lives. When this process ends, in
whatever way, its lock is released. If the host dies, others take the lock over once it has sent no heartbeat
for the TTL. The package runs the multilock program, which its wheel contains, so locks of Python, shell
scripts and Go programs exclude each other.
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
