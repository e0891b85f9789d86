"""Jobs over all hosts: once and for all, lists, and the barrier behind them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional, Sequence, Union, cast

from . import _program, errors
from ._program import FOREVER, Place, Seconds
from .lock import interrupt

Command = Union[str, Sequence[str]]
"""A command line for sh, or a list of words that is run as it is."""

Work = Union[Sequence[str], Callable[[], Any]]


@dataclass(frozen=True)
class Result:
    """How a run-once job stands."""

    ran: bool
    """Whether it was run here, and now."""
    exit: int
    """The job's exit code; of a function 0, or 1 if it raised."""
    value: Any = None
    """What the function returned, if it was run here."""
    attempt: int = 0


@dataclass(frozen=True)
class Batch:
    """How a list of jobs stands, over all hosts; ``json`` is all that ``multilock batch --json`` says."""

    total: int
    done: int
    failed: int
    left: int
    failures: list[dict[str, Any]] = field(repr=False)
    json: dict[str, Any] = field(repr=False)

    @property
    def ok(self) -> bool:
        return self.done == self.total


@dataclass(frozen=True)
class Barrier:
    """What a barrier found; ``json`` is all that ``multilock wait --json`` says."""

    ok: bool
    """Everything is done, and nothing failed or died."""
    failed: list[dict[str, Any]] = field(repr=False)
    crashed: list[dict[str, Any]] = field(repr=False)
    json: dict[str, Any] = field(repr=False)


def run_once(
    name: str,
    work: Work,
    *,
    every: Optional[Seconds] = None,
    retries: int = 0,
    wait: Optional[Seconds] = 0,
    ttl: Optional[Seconds] = None,
    dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    group: Optional[str] = None,
    source: Optional[str] = None,
    trust: Optional[str] = None,
) -> Result:
    """Runs a job once over all hosts: a list of words, or a function of this program.

    What succeeded once is not run again, on no host, or not before the next tick of ``every``. Who comes
    while it runs gets Held, or waits as long as ``wait`` says (None: for ever). An exception of the function
    is recorded as a failure, and raised here. If the lock is lost, the function is interrupted
    (as by Ctrl-C), nothing is recorded, and Lost is raised.
    """
    words = ["run", "--json", "--quiet", *Place(dir, group, source, trust).options()]
    words += _program.options(
        name=name,
        once=every is None,
        every=None if every is None else every if isinstance(every, str) else _program.duration(every),
        retries=retries or None,
        wait=FOREVER if wait is None else None if wait == 0 else _program.duration(wait),
        ttl=None if ttl is None else _program.duration(ttl),
    )
    if callable(work):
        return _Function(words, getattr(work, "__qualname__", "function"), work).run()
    if isinstance(work, str):
        raise TypeError('the command is a list of words; for a shell say ["sh", "-c", command]')
    with subprocess.Popen([_program.program(), *words, "--", *work], stderr=subprocess.PIPE, text=True, env=_program.environment()) as process:
        _, told = process.communicate()
    return _result(process.returncode, told)


def batch(
    jobs: Iterable[Union[Command, tuple[str, Command]]],
    *,
    workers: Optional[int] = None,
    retries: int = 0,
    options: Sequence[str] = (),
    dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    group: Optional[str] = None,
    source: Optional[str] = None,
    trust: Optional[str] = None,
) -> Batch:
    """Works through a list together with all hosts that are given the same list in the same group.

    A job is a command, or a pair of its name and its command. Returns when all jobs have a result, on
    whatever host. ``options`` are further words for ``multilock batch``, such as "--halt=now,fail=1".
    """
    words = ["batch", "--json", "--quiet", *Place(dir, group, source, trust).options()]
    words += _program.options(jobs=workers, retries=retries or None)
    lines = "".join(_line(job) + "\n" for job in jobs)
    done = _run([*words, *options, "-"], lines)
    told = _told(done, (0, 1))
    return Batch(told["total"], told["done"], told["failed"], told["left"], told["failures"] or [], told)


def wait(
    members: Optional[Iterable[str]] = None,
    *,
    expect: Optional[int] = None,
    timeout: Optional[Seconds] = None,
    options: Sequence[str] = (),
    dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    group: Optional[str] = None,
    source: Optional[str] = None,
    trust: Optional[str] = None,
) -> Barrier:
    """Waits until nothing in the group is held, or until the members, or ``expect`` many, have a result.

    Raises TimedOut when ``timeout`` has passed. What failed or died is in what it returns.
    """
    words = ["wait", "--json", "--quiet", *Place(dir, group, source, trust).options()]
    words += _program.options(expect=expect, timeout=None if timeout is None else _program.duration(timeout))
    if members is not None:
        words += ["--members=" + ",".join(members)]
    told = _told(_run([*words, *options]), (0, 1))
    return Barrier(told["ok"], told["failed"] or [], told["crashed"] or [], told)


def _run(words: Sequence[str], text: Optional[str] = None) -> "subprocess.CompletedProcess[str]":
    given: dict[str, Any] = {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run([_program.program(), *words], capture_output=True, text=True, env=_program.environment(), check=False, **given)


def _told(done: "subprocess.CompletedProcess[str]", fine: Sequence[int]) -> dict[str, Any]:
    if done.returncode not in fine or not done.stdout:
        raise errors.of(done.returncode, done.stderr)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _line(job: Union[Command, tuple[str, Command]]) -> str:
    """A job's line of the list: a pair is NAME<TAB>COMMAND."""
    name, command = cast("tuple[str, Command]", job) if isinstance(job, tuple) else ("", job)
    line = (f"{name}\t" if name else "") + (command if isinstance(command, str) else shlex.join(command))
    if "\n" in line:
        raise ValueError(f"a job is one line, and this one has several: {line!r}")
    return line


def _result(code: int, told: str, value: Any = None) -> Result:
    """Of the line on the standard error that ``run --json`` ends with."""
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    said = next((line for line in reversed(lines) if "ran" in line), None)
    if said is None:
        raise errors.of(code, told)
    if said["exit"] in (122, 123, 124, 125) and not said["ran"] or code == 122:
        raise errors.of(code, said.get("error") or told)
    return Result(said["ran"], code, value, said.get("attempt", 0))


class _Function:
    """A function of this process as the job of ``multilock run``.

    The job that multilock knows of is a shell that says when it begins, and waits to be told how
    it ended. If we die, it ends multilock, so that nothing is recorded; if multilock ends it, the lock is lost.
    """

    SCRIPT = 'echo begin; read -r code || { kill -TERM "$PPID"; exit 143; }; exit "$code"'

    def __init__(self, words: Sequence[str], label: str, function: Callable[[], Any]) -> None:
        self._words = [_program.program(), *words, f"--label={label}", "--", "sh", "-c", self.SCRIPT]
        self._function = function
        self._finished = threading.Event()
        self._interrupted = False

    def run(self) -> Result:
        pipe = subprocess.PIPE
        process = subprocess.Popen(self._words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=_program.environment())
        try:
            return self._beside(process)
        finally:
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None and not stream.closed:
                    stream.close()
            process.wait()

    def _beside(self, process: "subprocess.Popen[str]") -> Result:
        assert process.stdin and process.stdout and process.stderr
        if process.stdout.readline() != "begin\n":
            told = process.stderr.read()
            return _result(process.wait(), told)
        guard = threading.Thread(target=self._guard, args=(process, threading.current_thread()), daemon=True)
        guard.start()
        try:
            value = self._function()
        except KeyboardInterrupt:
            if not self._interrupted:
                raise  # nothing is told, so nothing is recorded
        except BaseException:
            self._tell(process, 1)
            raise
        else:
            code = self._tell(process, 0)
            if not self._interrupted:
                return _result(code, process.stderr.read(), value)
        told = process.stderr.read()
        raise errors.of(process.wait() or 122, told)

    def _tell(self, process: "subprocess.Popen[str]", code: int) -> int:
        assert process.stdin
        self._finished.set()
        try:
            process.stdin.write(f"{code}\n")
            process.stdin.close()
        except BrokenPipeError:
            pass
        return process.wait()

    def _guard(self, process: "subprocess.Popen[str]", thread: threading.Thread) -> None:
        assert process.stdout
        process.stdout.read()  # until the shell ends
        if not self._finished.is_set():
            self._interrupted = True
            interrupt(thread)
