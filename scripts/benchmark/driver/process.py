"""A peer's processes: workers that are told what to do, and the processor time of any process."""

import json
import os
import subprocess
import tempfile
import threading
import time

from .catalogue import environment

# After this long a peer counts as stuck. Far beyond what the slowest one needs.
WATCHDOG_SECONDS = 600


class Failed(Exception):
    """A peer did not do what it was told; the text says what it complained of."""


class Worker:
    """One contender of a library, in a process of its own. A context manager: leaving it ends the process."""

    def __init__(self, library, directory):
        self._complaints = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [*library.argv, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=environment(os.environ),
        )
        self._watchdog = threading.Timer(WATCHDOG_SECONDS, self._process.kill)
        self._watchdog.daemon = True
        self._watchdog.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._watchdog.cancel()
        # A worker that waits for a lock does not look at its input: it has to be killed.
        self._process.kill()
        self._process.communicate()
        self._complaints.close()

    def ask(self, *command):
        """Sends a command and returns the answer."""
        self.tell(*command)
        return self.answer()

    def tell(self, *command):
        """Sends a command. The answer is still to be fetched."""
        try:
            print(*command, file=self._process.stdin, flush=True)
        except BrokenPipeError as error:
            raise Failed(self._complaint()) from error

    def answer(self):
        """Waits for the next answer; the first, which nobody asked for, says that the worker is ready."""
        line = self._process.stdout.readline()
        if not line:
            raise Failed(self._complaint())
        return json.loads(line)

    def processor_seconds(self):
        return processor_seconds(self._process)

    def _complaint(self):
        code = self._process.wait()
        self._complaints.seek(0)
        lines = self._complaints.read().splitlines()
        return lines[-1] if lines else f"ended with code {code}"


def processor_seconds(process):
    """User and system time of a running process, its ended threads included, without its children."""
    if process.poll() is not None:
        raise Failed(f"ended with code {process.returncode} before it was done")
    # What clock_getcpuclockid(3) computes; Python has no name for it.
    clock = (~process.pid << 3) | 2
    return time.clock_gettime_ns(clock) / 1e9
