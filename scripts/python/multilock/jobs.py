"""Jobs over all hosts: once and for all, lists, and the barrier behind them."""

from __future__ import annotations

import os
import shlex
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union, cast

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
    """Which attempt it was, from 1, over all hosts together."""

    @property
    def ok(self) -> bool:
        """The job has succeeded, here or elsewhere."""
        return self.exit == 0


@dataclass(frozen=True)
class Batch:
    """How a list of jobs stands, over all hosts; ``json`` is all that ``multilock batch --json`` says."""

    total: int
    done: int
    failed: int
    unfinished: int
    failures: list[dict[str, Any]] = field(repr=False)
    json: dict[str, Any] = field(repr=False)

    @property
    def ok(self) -> bool:
        """All jobs have succeeded."""
        return self.done == self.total

    def __repr__(self) -> str:
        return f"Batch(total={self.total}, done={self.done}, unfinished={self.unfinished}, failed={self.failed}: {_names(self.failures)})"


def _names(of: list[dict[str, Any]], most: int = 10) -> str:
    more = f" and {len(of) - most} more" if len(of) > most else ""
    return str([one["name"] for one in of[:most]]) + more


@dataclass(frozen=True)
class Barrier:
    """What a barrier found; ``json`` is all that ``multilock wait --json`` says."""

    ok: bool
    """Everything is done, and nothing failed or died."""
    failures: list[dict[str, Any]] = field(repr=False)
    dead: list[dict[str, Any]] = field(repr=False)
    json: dict[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"Barrier(ok={self.ok}, failures={_names(self.failures)}, dead={_names(self.dead)})"


def run_once(
    name: str,
    work: Work,
    *,
    every: Optional[Seconds] = None,
    retries: int = 0,
    wait: Optional[Seconds] = 0,
    ttl: Optional[Seconds] = None,
    check: bool = True,
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

    How a command ends that is run here is in the result: see ``ok``. One that has failed before, for good, is
    not run, and raises Failed; with ``check=False`` its result is returned. A command has the standard streams
    of this process.
    """
    words = ["run", "--quiet", *Place(dir, group, source, trust).options()]
    words += _program.options(
        name=name,
        once=every is None,
        every=None if every is None else every if isinstance(every, str) else _program.duration(every),
        retries=retries or None,
        wait=FOREVER if wait is None else None if wait == 0 else _program.duration(wait),
        ttl=None if ttl is None else _program.duration(ttl),
    )
    if callable(work):
        return _Function(words, getattr(work, "__qualname__", "function"), work).run(check)
    if isinstance(work, str):
        raise TypeError('the command is a list of words; for a shell say ["sh", "-c", command]')
    return _result(_program.finish(_program.Run([*words, "--", *map(os.fsdecode, work)])), check)


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

    A job is a command, or a pair (a tuple) of its name and its command; any text will do but for NUL
    characters. Without a name it is called by its number. Returns when all jobs have a result, on
    whatever host. ``options`` are further words for ``multilock batch``, such as "--halt=now,fail=1".
    """
    words = ["batch", "--json", "--quiet", *Place(dir, group, source, trust).options()]
    words += _program.options(jobs=workers, retries=retries or None)
    pairs = os.fsencode("".join(map(_pair, jobs)))
    said = answer([*words, *options, "--null", "-"], pairs)
    return Batch(said["total"], said["done"], said["failed"], said["unfinished"], said["failures"] or [], said)


def wait(
    members: Optional[Iterable[str]] = None,
    *,
    expect: Optional[int] = None,
    timeout: Optional[Seconds] = None,
    check: bool = True,
    options: Sequence[str] = (),
    dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    group: Optional[str] = None,
    source: Optional[str] = None,
    trust: Optional[str] = None,
) -> Barrier:
    """Waits until nothing in the group is held, or until the members, or ``expect`` many, have a result.

    Raises TimedOut when ``timeout`` has passed, and Failed if a job has failed or died; with ``check=False``
    what failed or died is in what it returns.
    """
    words = ["wait", "--json", "--quiet", *Place(dir, group, source, trust).options()]
    words += _program.options(expect=expect, wait=None if timeout is None else _program.duration(timeout))
    if members is not None:
        words += ["--members=" + ",".join(members)]
    said = answer([*words, *options])
    barrier = Barrier(said["ok"], said["failures"] or [], said["dead"] or [], said)
    if check and not barrier.ok:
        raise errors.Failed(f"{said.get('error', 'not all jobs have succeeded')}: {barrier}", 1, barrier)
    return barrier


def answer(words: Sequence[str], given: Optional[bytes] = None, variables: Optional[Mapping[str, str]] = None) -> dict[str, Any]:
    """What a command prints with --json; 1 is its code if a job has failed."""
    call = _program.finish(_program.Call(words, given, variables=variables))
    said = errors.parsed(call.output) if call.code in (0, 1) else {}
    if not said:
        raise errors.of(call.code or 0, call.messages)
    return said


def _pair(job: Union[Command, tuple[str, Command]]) -> str:
    """A job of a list with --null; the name of one that has none is empty."""
    if isinstance(job, tuple) and len(job) != 2:
        raise TypeError(f"a tuple is a pair of a name and a command; write a list for the words of a command: {job!r}")
    name, command = cast("tuple[str, Command]", job) if isinstance(job, tuple) else ("", job)
    fields = name, command if isinstance(command, str) else shlex.join(map(os.fsdecode, command))
    if any("\0" in text for text in fields):
        raise ValueError(f"a job has no NUL characters, and this one has: {job!r}")
    return "".join(text + "\0" for text in fields)


def _result(run: _program.Run, check: bool, value: Any = None) -> Result:
    """Of what ``multilock run`` has reported."""
    report, code = run.report(), run.code or 0
    if report is None:
        raise errors.of(code, run.messages)
    before = report.get("result")
    if code != 0 and "error" in report and (before is None or before["state"] == "unknown"):  # it is not the job that has failed
        raise errors.of(code, report["error"])
    result = Result(report["ran"], code, value, (before or report).get("attempt", 0))
    if check and before is not None and not result.ok:
        raise errors.Failed(report["error"], code, result)
    return result


class _Function:
    """A function of this process as the job of ``multilock run``.

    The job that multilock knows of is a shell that says when it begins, and waits to be told how
    it ended. If we die, it ends multilock, so that nothing is recorded; if multilock ends it, the lock is lost.
    """

    SCRIPT = 'echo begin; read -r code || { kill -TERM "$PPID"; exit 143; }; exit "$code"'

    def __init__(self, words: Sequence[str], label: str, function: Callable[[], Any]) -> None:
        self._words = [*words, f"--label={label}", "--", "sh", "-c", self.SCRIPT]
        self._function = function
        self._finished = threading.Event()
        self._interrupted = False

    def run(self, check: bool) -> Result:
        (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
        with open(ours_in, "rb") as answers, open(ours_out, "wb", 0) as orders, open(theirs_in, "rb") as stdin, open(theirs_out, "wb") as stdout:
            self._answers, self._orders = answers, orders
            self._call = _program.Run(self._words, stdin=stdin, stdout=stdout)
            try:
                self._ended = _program.apart(self._call.run)
                return self._beside(check)
            except BaseException:
                self._call.abandon()
                raise

    def _beside(self, check: bool) -> Result:
        if self._answers.readline() != b"begin\n":
            self._ended.result()
            return _result(self._call, check)
        threading.Thread(target=self._guard, args=(threading.current_thread(),), daemon=True).start()
        try:
            value = self._function()
        except KeyboardInterrupt:
            if not self._interrupted:
                self._finished.set()
                raise  # nothing is told, so nothing is recorded
        except BaseException:
            self._tell(1)
            raise
        else:
            self._tell(0)
            if not self._interrupted:
                return _result(self._call, check, value)
        self._ended.result()
        raise errors.of(self._call.code or 122, (self._call.report() or {}).get("error") or self._call.messages)

    def _tell(self, code: int) -> None:
        self._finished.set()
        try:
            self._orders.write(b"%d\n" % code)
            self._orders.close()
        except BrokenPipeError:
            pass
        self._ended.result()

    def _guard(self, thread: threading.Thread) -> None:
        self._answers.read()  # until the shell ends
        if not self._finished.is_set():
            self._interrupted = True
            interrupt(thread)
