"""Measurements of commands: the time of a call, and idle waiters."""

import os
import statistics
import subprocess
import time
from contextlib import contextmanager

from .process import Failed, processor_seconds


def argv(template, directory, *command):
    return [part.format(directory) for part in template] + list(command)


def call_time(command, scratch, effort):
    """Return the median time in milliseconds of a call that runs `true`."""
    call = argv(command.argv, scratch(), "true")
    return {"median": statistics.median(timed(call) for _ in range(effort.calls))}


def timed(call):
    start = time.monotonic()
    # posix_spawn has less overhead than subprocess, and the same for every peer.
    pid = os.posix_spawnp(call[0], call, os.environ)
    _, status = os.waitpid(pid, 0)
    milliseconds = (time.monotonic() - start) * 1e3
    if status != 0:
        raise Failed(f"{' '.join(call)}: exit code {os.waitstatus_to_exitcode(status)}")
    return milliseconds


@contextmanager
def waiting(command, directory):
    """Run a call that waits for a lock held by another call. Yield a function that returns its processor time."""
    hold = argv(command.waiting, directory, "sh", "-c", "echo held; exec cat")
    holder = subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if holder.stdout.readline() != b"held\n":
            raise Failed("it did not acquire a free lock")
        waiter = subprocess.Popen(argv(command.waiting, directory, "true"))
        try:
            yield lambda: processor_seconds(waiter)
        finally:
            waiter.kill()
            waiter.wait()
    finally:
        # The end of its input ends the command of the holder, and so releases the lock.
        holder.communicate()
