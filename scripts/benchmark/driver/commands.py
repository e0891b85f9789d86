"""The measures of commands: what a call costs, and the processes of an idle waiter."""

import os
import statistics
import subprocess
import time
from contextlib import contextmanager

from .process import Failed, processor_seconds


def argv(template, directory, *command):
    return [part.format(directory) for part in template] + list(command)


def call_time(command, scratch, effort):
    """The median milliseconds of a call that runs `true`, from start to end."""
    call = argv(command.argv, scratch(), "true")
    return {"median": statistics.median(timed(call) for _ in range(effort.calls))}


def timed(call):
    began = time.monotonic()
    # posix_spawn costs the caller the same for every peer; subprocess would add its own bookkeeping.
    pid = os.posix_spawnp(call[0], call, os.environ)
    _, status = os.waitpid(pid, 0)
    milliseconds = (time.monotonic() - began) * 1e3
    if status != 0:
        raise Failed(f"{' '.join(call)}: exit code {os.waitstatus_to_exitcode(status)}")
    return milliseconds


@contextmanager
def waiting(command, directory):
    """A call that waits for the lock, which another call holds meanwhile. Yields a function of its processor time."""
    hold = argv(command.waiting, directory, "sh", "-c", "echo held; exec cat")
    holder = subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        if holder.stdout.readline() != b"held\n":
            raise Failed("did not get a free lock")
        waiter = subprocess.Popen(argv(command.waiting, directory, "true"))
        try:
            yield lambda: processor_seconds(waiter)
        finally:
            waiter.kill()
            waiter.wait()
    finally:
        # Its command reads until the end of its input: that is how the lock is released.
        holder.communicate()
