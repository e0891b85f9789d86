"""Finds and runs the multilock program."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar, Union

from . import errors

Seconds = Union[int, float, str]
"""A number of seconds, or a text as on the command line: "90s", "5m", "1d"."""

FOREVER = "forever"

T = TypeVar("T")

_ERRORS = {120: errors.Held, 121: errors.Held, 122: errors.Lost, 123: errors.Unknown, 124: errors.TimedOut}


def program() -> str:
    """Return the path of the multilock program.

    It is the value of ``MULTILOCK_PROGRAM``, or the program in this package, or the one in ``PATH``.

    Raises:
        Error: There is no program.
    """
    chosen = os.environ.get("MULTILOCK_PROGRAM")
    if chosen:
        return chosen
    bundled = Path(__file__).parent / "bin" / ("multilock.exe" if os.name == "nt" else "multilock")
    if bundled.exists():
        return str(bundled)
    found = shutil.which("multilock")
    if found is None:
        raise errors.Error(
            "the multilock program was not found, neither in this package nor in PATH: "
            "install the wheel for this system, or set MULTILOCK_PROGRAM to the path of the program"
        )
    return found


def version() -> str:
    """Return the version of the multilock program."""
    return check_output(["--version"]).split()[1]


def duration(seconds: Seconds) -> str:
    """Format a duration for the command line."""
    return seconds if isinstance(seconds, str) else f"{seconds:.3f}s"


def decode(output: bytes) -> str:
    """Decode output like os.fsdecode: bytes that are not UTF-8 become lone surrogates."""
    return output.decode("utf-8", "surrogateescape")


def parse_object(line: str) -> dict[str, Any]:
    """Parse a JSON object. Return an empty dictionary for any other text."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def error_for(code: int, messages: str) -> errors.Error:
    """Return the exception for an exit code. With --json each line of the messages is an object."""
    lines = [str(parse_object(line).get("message", line)) for line in messages.splitlines()]
    text = "\n".join(lines).strip()
    no_text = f"multilock ended with exit code {code}; its standard error may have the reason"
    return _ERRORS.get(code, errors.Error)(text or no_text, code)


@dataclass(frozen=True)
class Place:
    """The location of locks. Values that are None come from MULTILOCK_DIR, MULTILOCK_SOURCE and so on."""

    dir: Optional[Union[str, "os.PathLike[str]"]] = None
    group: Optional[str] = None
    source: Optional[str] = None
    trust: Optional[str] = None

    def options(self) -> list[str]:
        values = {"--dir": self.dir, "--group": self.group, "--source": self.source, "--trust": self.trust}
        return [f"{option}={os.fsdecode(value)}" for option, value in values.items() if value is not None]

    def shell_command(self, *args: str) -> str:
        """Return a command line for this location that a user can paste into a shell."""
        return shlex.join(["multilock", *self.options(), *args])


def options(**values: Any) -> list[str]:
    """Convert keyword arguments to command-line options. None and False are omitted."""
    args = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            args.append(option)
        elif value is not None and value is not False:
            args.append(f"{option}={value}")
    return args


def environment() -> dict[str, str]:
    """Return the environment without MULTILOCK_TOKEN, which identifies the lock that this process runs under."""
    return {name: value for name, value in os.environ.items() if name != "MULTILOCK_TOKEN"}


class Call:
    """One run of the program. ``run`` runs it; another thread may ``cancel`` it at any time.

    Attributes:
        output: The standard output, once the program has ended.
        messages: The standard error, once the program has ended.
    """

    def __init__(
        self,
        args: Sequence[str],
        data: Optional[bytes] = None,
        *,
        variables: Optional[Mapping[str, str]] = None,
        **streams: Any,
    ) -> None:
        """Prepare the call without starting the program.

        Args:
            args: The arguments of the program.
            data: The contents of its standard input.
            variables: Additional environment variables.
            streams: Streams for subprocess.Popen. By default the output is captured.
        """
        self._args, self._data, self._variables = [program(), *args], data, variables or {}
        self._streams = streams or {
            "stdin": subprocess.DEVNULL if data is None else subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        self._lock = threading.Lock()
        self._cancelled = False
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._ended = threading.Event()
        self.output = self.messages = ""

    @property
    def code(self) -> Optional[int]:
        """The exit code, or None if the program was not started or has not ended."""
        return None if self._process is None else self._process.returncode

    def run(self) -> None:
        """Run the program until it ends. Do nothing if the call was cancelled."""
        with self._lock:
            if self._cancelled:
                return
            self._process = self._start()
        try:
            self._communicate(self._process)
        finally:
            self._ended.set()

    def cancel(self) -> None:
        """Terminate the program and wait for its end, or prevent its start."""
        with self._lock:
            self._cancelled = True
            process = self._process
        if process is not None:
            process.terminate()
            self._ended.wait()

    def check_output(self, expected: Sequence[int] = (0,)) -> str:
        """Return the standard output. Raise an Error if the exit code is not among the expected ones."""
        if self.code not in expected:
            raise error_for(self.code or 0, self.messages)
        return self.output

    def _start(self, **more: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self._args, env={**environment(), **self._variables}, **self._streams, **more)

    def _communicate(self, process: "subprocess.Popen[bytes]") -> None:
        out, err = process.communicate(self._data)
        self.output, self.messages = decode(out), decode(err)


class Run(Call):
    """A call of ``multilock run``, which reports on a descriptor of its own that the job does not inherit.

    The report is stored in ``messages``.
    """

    def __init__(self, args: Sequence[str], **streams: Any) -> None:
        """Prepare the call.

        Args:
            args: The arguments of the program. The first is "run".
            streams: Files for the job, closed after its start. By default it inherits those of this process.
        """
        super().__init__(args, **(streams or {"stdin": None}))
        self._report_fd = -1

    def _start(self, **more: Any) -> "subprocess.Popen[bytes]":
        self._report_fd, writer = os.pipe()
        try:
            self._args[2:2] = ["--json", f"--json-fd={writer}"]
            return super()._start(pass_fds=(writer,), **more)
        except BaseException:
            os.close(self._report_fd)
            raise
        finally:
            os.close(writer)
            for stream in self._streams.values():
                if stream is not None:
                    stream.close()

    def _communicate(self, process: "subprocess.Popen[bytes]") -> None:
        # The report is much smaller than the pipe's capacity, so all of it can be read after the program has ended.
        # Reading to end-of-file may block, because a process that another thread forked has the writer open.
        try:
            process.wait()
            os.set_blocking(self._report_fd, False)
            report = b""
            while chunk := self._read():
                report += chunk
            self.messages = decode(report)
        finally:
            os.close(self._report_fd)

    def _read(self) -> bytes:
        try:
            return os.read(self._report_fd, 1 << 16)
        except BlockingIOError:
            return b""

    def report(self) -> Optional[dict[str, Any]]:
        """Return the program's report on the job, or None if it failed before it could report."""
        for line in reversed(self.messages.splitlines()):
            report = parse_object(line)
            if "ran" in report:
                return report
        return None


C = TypeVar("C", bound=Call)


def in_thread(work: Callable[[], T]) -> "Future[T]":
    """Start a function in a new thread, where no KeyboardInterrupt can interrupt it."""
    future: "Future[T]" = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="multilock").start()
    except RuntimeError:  # at interpreter shutdown no thread can be started
        run()
    return future


def run_cancellable(call: C) -> C:
    """Run a call. Cancel it if this thread is interrupted."""
    try:
        in_thread(call.run).result()
    except BaseException:
        call.cancel()
        raise
    return call


def run_to_end(call: Call) -> Call:
    """Run a call to its end. If this thread is interrupted, raise KeyboardInterrupt only then."""
    ended = in_thread(call.run)
    try:
        ended.result()
    except KeyboardInterrupt:
        ended.result()
        raise
    return call


def check_output(args: Sequence[str], expected: Sequence[int] = (0,)) -> str:
    """Run the program and return its output. Raise an Error if its exit code is not among the expected ones."""
    return run_cancellable(Call(args)).check_output(expected)


def json_output(
    args: Sequence[str], data: Optional[bytes] = None, variables: Optional[Mapping[str, str]] = None
) -> dict[str, Any]:
    """Run a command with --json and return its object.

    Exit code 1 raises no error, because it means that a job failed.
    """
    call = run_cancellable(Call(args, data, variables=variables))
    answer = parse_object(call.output) if call.code in (0, 1) else {}
    if not answer:
        raise error_for(call.code or 0, call.messages)
    return answer
