"""The processes of a peer: workers that execute commands, and their processor time."""

import json
import os
import subprocess
import tempfile
import threading
import time

from .catalogue import environment

# After this time, much longer than the slowest peer needs, a peer counts as stuck.
WATCHDOG_SECONDS = 600


class Failed(Exception):
    """A peer failed. The message has its error."""


class Worker:
    """A process that uses a library. As a context manager it kills the process at the end."""

    def __init__(self, library, directory):
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            [*library.argv, directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
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
        # A worker that waits for a lock does not read its input.
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def ask(self, *command):
        """Send a command, and return the answer."""
        self.send(*command)
        return self.answer()

    def send(self, *command):
        """Send a command, without waiting for the answer."""
        try:
            print(*command, file=self._process.stdin, flush=True)
        except BrokenPipeError as error:
            raise Failed(self._error()) from error

    def answer(self):
        """Wait for the next answer. The first one, without a command, means that the worker is ready."""
        line = self._process.stdout.readline()
        if not line:
            raise Failed(self._error())
        return json.loads(line)

    def processor_seconds(self):
        return processor_seconds(self._process)

    def _error(self):
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().splitlines()
        return lines[-1] if lines else f"its worker ended with exit code {code}"


def processor_seconds(process):
    """Return the user and system time of a running process, without its children."""
    if process.poll() is not None:
        raise Failed(f"it ended early, with exit code {process.returncode}")
    # The result of clock_getcpuclockid(3), which Python lacks.
    clock = (~process.pid << 3) | 2
    return time.clock_gettime_ns(clock) / 1e9
