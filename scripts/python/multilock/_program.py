"""The multilock program: where it is, and how it is called."""

from __future__ import annotations

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


def program() -> str:
    """The program that is called: $MULTILOCK_PROGRAM, the one in this package, or that of $PATH."""
    named = os.environ.get("MULTILOCK_PROGRAM")
    if named:
        return named
    ours = Path(__file__).parent / "bin" / ("multilock.exe" if os.name == "nt" else "multilock")
    if ours.exists():
        return str(ours)
    found = shutil.which("multilock")
    if found is None:
        raise errors.Error("there is no multilock program: not in this package, and not in $PATH")
    return found


def version() -> str:
    """The program's version."""
    return call(["--version"]).split()[1]


def duration(seconds: Seconds) -> str:
    """A span of time as the program wants it."""
    return seconds if isinstance(seconds, str) else f"{seconds:.3f}s"


def text(output: bytes) -> str:
    """Output as text, in which bytes that are no UTF-8 become lone surrogates, as in os.fsdecode."""
    return output.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Place:
    """Where locks live. Without ``dir`` and ``source``, $MULTILOCK_DIR or $MULTILOCK_SOURCE says it."""

    dir: Optional[Union[str, "os.PathLike[str]"]] = None
    group: Optional[str] = None
    source: Optional[str] = None
    trust: Optional[str] = None

    def options(self) -> list[str]:
        given = {"--dir": self.dir, "--group": self.group, "--source": self.source, "--trust": self.trust}
        return [f"{option}={os.fsdecode(value)}" for option, value in given.items() if value is not None]

    def shown(self, *words: str) -> str:
        """A command about this place, to type into a shell."""
        return shlex.join(["multilock", *self.options(), *words])


def options(**given: Any) -> list[str]:
    """Command-line options of keyword arguments; None and False are left out."""
    words = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words.append(f"{option}={value}")
    return words


def environment() -> dict[str, str]:
    """Ours, but a lock that this process itself runs under is not the one that is asked for."""
    return {name: value for name, value in os.environ.items() if name != "MULTILOCK_TOKEN"}


class Call:
    """One call of the program, which ``run`` makes and another thread may abandon at any time."""

    def __init__(self, words: Sequence[str], given: Optional[bytes] = None, *, variables: Optional[Mapping[str, str]] = None, **streams: Any) -> None:
        """``streams`` are those of subprocess.Popen; without them the output is kept."""
        self._words, self._given, self._variables = [program(), *words], given, variables or {}
        self._streams = streams or {"stdin": subprocess.DEVNULL if given is None else subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._lock = threading.Lock()
        self._abandoned = False
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._ended = threading.Event()
        self.output = self.messages = ""
        """What it printed on its standard output, and its messages: of the standard error, or with --json-fd."""

    @property
    def code(self) -> Optional[int]:
        """The program's exit code; None if it was not started or has not ended."""
        return None if self._process is None else self._process.returncode

    def run(self) -> None:
        with self._lock:
            if self._abandoned:
                return
            self._process = self._start()
        try:
            self._communicate(self._process)
        finally:
            self._ended.set()

    def abandon(self) -> None:
        """Ends the program if it runs, and keeps it from being started if it does not."""
        with self._lock:
            self._abandoned = True
            process = self._process
        if process is not None:
            process.terminate()
            self._ended.wait()

    def answer(self, fine: Sequence[int] = (0,)) -> str:
        """What the program printed; raises an Error if its exit code is none of those that are fine."""
        if self.code not in fine:
            raise errors.of(self.code or 0, self.messages)
        return self.output

    def _start(self, **more: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self._words, env={**environment(), **self._variables}, **self._streams, **more)

    def _communicate(self, process: "subprocess.Popen[bytes]") -> None:
        out, err = process.communicate(self._given)
        self.output, self.messages = text(out), text(err)


class Run(Call):
    """A call of ``multilock run``, which says how the job went on a descriptor that the job does not have."""

    def __init__(self, words: Sequence[str], **streams: Any) -> None:
        """``streams`` are files for the job, which are closed here when it has them. Without them it has ours."""
        super().__init__(words, **(streams or {"stdin": None}))
        self._report = -1

    def _start(self, **more: Any) -> "subprocess.Popen[bytes]":
        self._report, writer = os.pipe()
        try:
            self._words[2:2] = ["--json", f"--json-fd={writer}"]
            return super()._start(pass_fds=(writer,), **more)
        except BaseException:
            os.close(self._report)
            raise
        finally:
            os.close(writer)
            for stream in self._streams.values():
                if stream is not None:
                    stream.close()

    def _communicate(self, process: "subprocess.Popen[bytes]") -> None:
        # All of it is in the pipe when the program has ended: it is much less than a pipe takes. To read until
        # the end of the pipe could take longer, if another thread has forked while the writer was open.
        try:
            process.wait()
            os.set_blocking(self._report, False)
            report = b""
            while chunk := self._read():
                report += chunk
            self.messages = text(report)
        finally:
            os.close(self._report)

    def _read(self) -> bytes:
        try:
            return os.read(self._report, 1 << 16)
        except BlockingIOError:
            return b""

    def report(self) -> Optional[dict[str, Any]]:
        """What the program says of the job; None if it did not come so far."""
        for line in reversed(self.messages.splitlines()):
            said = errors.parsed(line)
            if "ran" in said:
                return said
        return None


C = TypeVar("C", bound=Call)


def apart(work: Callable[[], T]) -> "Future[T]":
    """Does the work in a thread of its own: an interrupt of this one comes between no two steps of it."""
    future: "Future[T]" = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    try:
        threading.Thread(target=run, name="multilock").start()
    except RuntimeError:  # the interpreter is ending, and starts no more threads
        run()
    return future


def finish(call: C) -> C:
    """Makes a call. If this thread is interrupted, the program is ended, however far it had come."""
    try:
        apart(call.run).result()
    except BaseException:
        call.abandon()
        raise
    return call


def complete(call: Call) -> Call:
    """Makes a call that goes on when this thread is interrupted, which is raised when the program has ended."""
    ended = apart(call.run)
    try:
        ended.result()
    except KeyboardInterrupt:
        ended.result()
        raise
    return call


def call(words: Sequence[str], fine: Sequence[int] = (0,)) -> str:
    """What the program prints; raises an Error if its exit code is none of those that are fine."""
    return finish(Call(words)).answer(fine)
