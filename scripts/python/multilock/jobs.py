"""Jobs across all hosts: run once, lists of jobs, and the barrier."""

from __future__ import annotations

import os
import shlex
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional, Sequence, Union, cast

from . import _program, errors
from ._program import FOREVER, Place, Seconds
from .lock import interrupt

Command = Union[str, Sequence[str]]
"""A command line for sh, or a list of arguments that no shell interprets."""

Work = Union[Sequence[str], Callable[[], Any]]


@dataclass(frozen=True)
class Result:
    """The result of ``run_once``.

    Attributes:
        ran: Whether this call ran the job. If not, the result was recorded before.
        exit: The job's exit code; for a function 0, or 1 if it raised an exception.
        value: The return value of the function, if this call ran it.
        attempt: The number of the attempt, counted from 1 across all hosts.
    """

    ran: bool
    exit: int
    value: Any = None
    attempt: int = 0

    @property
    def ok(self) -> bool:
        """Whether the job has succeeded, on this host or another."""
        return self.exit == 0


@dataclass(frozen=True)
class Batch:
    """The state of a list of jobs, across all hosts.

    Attributes:
        total: The number of jobs.
        done: The number of jobs that succeeded.
        failed: The number of jobs that failed permanently.
        unfinished: The number of jobs that have not ended.
        failures: An object for each failed job, with its "name" among others.
        json: The whole output of ``multilock batch --json``; docs/json.md describes it.
    """

    total: int
    done: int
    failed: int
    unfinished: int
    failures: list[dict[str, Any]] = field(repr=False)
    json: dict[str, Any] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether all jobs have succeeded."""
        return self.done == self.total

    def __repr__(self) -> str:
        counts = f"total={self.total}, done={self.done}, unfinished={self.unfinished}, failed={self.failed}"
        return f"Batch({counts}: {_names(self.failures)})"


@dataclass(frozen=True)
class Barrier:
    """The result of ``wait``.

    Attributes:
        ok: Whether all jobs have succeeded.
        failures: An object for each job that failed.
        dead: An object for each job whose holder died.
        json: The whole output of ``multilock wait --json``; docs/json.md describes it.
    """

    ok: bool
    failures: list[dict[str, Any]] = field(repr=False)
    dead: list[dict[str, Any]] = field(repr=False)
    json: dict[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"Barrier(ok={self.ok}, failures={_names(self.failures)}, dead={_names(self.dead)})"


def _names(jobs: list[dict[str, Any]], limit: int = 10) -> str:
    more = f" and {len(jobs) - limit} more" if len(jobs) > limit else ""
    return str([job["name"] for job in jobs[:limit]]) + more


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
    """Run a job once across all hosts, or once per period.

    If the job has succeeded before, on any host, it is not run again, and the recorded result is returned.

    A command inherits the standard streams of this process. A function runs in this thread; if it returns,
    success is recorded. An exception of the function is recorded as a failure, and raised here. If the lock is
    lost, the function is interrupted as by Ctrl-C, and nothing is recorded.

    Args:
        name: The name of the job and of its lock.
        work: A command, as a list of arguments, or a function without parameters.
        every: Run the job once per period, such as "1d" or "1d@07:30", instead of only once.
        retries: How many further attempts to make if the job fails, counted across all hosts.
        wait: How long to wait while another process runs the job. None waits forever, and 0 raises Held.
        ttl: How long the lock stays held without a heartbeat. Default: two minutes.
        check: Whether to raise Failed for a job that failed permanently in an earlier call.
        dir, group, source, trust: The location of the lock; see ``help(multilock)``.

    Returns:
        A Result. A command that this call ran may have failed: look at ``ok``.

    Raises:
        Held: Another process is running the job.
        TimedOut: Another process was running the job until ``wait`` had passed.
        Lost: The lock was lost while the job ran.
        Failed: The job failed permanently in an earlier call, and is not run again.
        Error: The job cannot be run, or its result cannot be recorded.
    """
    args = ["run", "--quiet", *Place(dir, group, source, trust).options()]
    args += _program.options(
        name=name,
        once=every is None,
        every=None if every is None else _program.duration(every),
        retries=retries or None,
        wait=FOREVER if wait is None else None if wait == 0 else _program.duration(wait),
        ttl=None if ttl is None else _program.duration(ttl),
    )
    if callable(work):
        return _Function(args, getattr(work, "__qualname__", "function"), work).run(check)
    if isinstance(work, str):
        raise TypeError(
            "work must be a function or a list of arguments, not a string; "
            'to run a command line in a shell, pass ["sh", "-c", line]'
        )
    return _result(_program.run_cancellable(_program.Run([*args, "--", *map(os.fsdecode, work)])), check)


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
    """Run a list of jobs together with all hosts that call this with the same list and group.

    Each job runs once; the jobs of a host that dies are run by others. The call returns when all jobs have
    ended, on any host. Jobs that have ended before are not run again.

    Args:
        jobs: Commands, or tuples of a name and a command. A command is a line for sh, or a list of arguments
            that no shell interprets. The name of a job without one is its number. Jobs may contain any
            characters except NUL.
        workers: How many jobs to run at a time on this host.
        retries: How many further attempts to make for a job that fails.
        options: Further options of ``multilock batch``, such as "--halt=now,fail=1".
        dir, group, source, trust: The location of the locks; see ``help(multilock)``. A group is required here
            or in MULTILOCK_GROUP.

    Returns:
        A Batch. Jobs may have failed: look at ``ok``.

    Raises:
        Error: The list cannot be run, for example because the group has another list.
    """
    args = ["batch", "--json", "--quiet", *Place(dir, group, source, trust).options()]
    args += _program.options(jobs=workers, retries=retries or None)
    fields = os.fsencode("".join(map(_fields, jobs)))
    answer = _program.json_output([*args, *options, "--null", "-"], fields)
    failures = answer["failures"] or []
    return Batch(answer["total"], answer["done"], answer["failed"], answer["unfinished"], failures, answer)


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
    """Wait until the jobs of a group have ended: a barrier.

    Without ``members`` and ``expect`` the call waits until no lock of the group is held. Crashed hosts do not
    block it.

    Args:
        members: Names of jobs, each of which must have a result.
        expect: How many jobs must have a result.
        timeout: How long to wait. None waits forever.
        check: Whether to raise Failed if a job failed or died.
        options: Further options of ``multilock wait``.
        dir, group, source, trust: The location of the locks; see ``help(multilock)``.

    Returns:
        A Barrier, with the jobs that failed or died.

    Raises:
        TimedOut: The jobs had not ended when ``timeout`` had passed.
        Failed: A job failed or died; its ``result`` is the Barrier.
        Error: The group cannot be read.
    """
    args = ["wait", "--json", "--quiet", *Place(dir, group, source, trust).options()]
    args += _program.options(expect=expect, wait=None if timeout is None else _program.duration(timeout))
    if members is not None:
        args += ["--members=" + ",".join(members)]
    answer = _program.json_output([*args, *options])
    barrier = Barrier(answer["ok"], answer["failures"] or [], answer["dead"] or [], answer)
    if check and not barrier.ok:
        raise errors.Failed(f"{answer.get('error', 'not all jobs have succeeded')}: {barrier}", 1, barrier)
    return barrier


def _fields(job: Union[Command, tuple[str, Command]]) -> str:
    """Encode a job for --null: the name, which may be empty, and the command, each ended by NUL."""
    if isinstance(job, tuple) and len(job) != 2:
        raise TypeError(f"a tuple must be a name and a command, so pass arguments as a list, not as a tuple: {job!r}")
    name, command = cast("tuple[str, Command]", job) if isinstance(job, tuple) else ("", job)
    fields = name, command if isinstance(command, str) else shlex.join(map(os.fsdecode, command))
    if any("\0" in text for text in fields):
        raise ValueError(f"the name and the command of a job must not contain NUL characters: {job!r}")
    return "".join(text + "\0" for text in fields)


def _result(run: _program.Run, check: bool, value: Any = None) -> Result:
    """Convert the report of ``multilock run`` to a Result, or raise the error that it reports."""
    report, code = run.report(), run.code or 0
    if report is None:
        raise _program.error_for(code, run.messages)
    recorded = report.get("result")
    job_failed = recorded is not None and recorded["state"] != "unknown"
    if code != 0 and "error" in report and not job_failed:
        raise _program.error_for(code, report["error"])
    result = Result(report["ran"], code, value, (recorded or report).get("attempt", 0))
    if check and recorded is not None and not result.ok:
        raise errors.Failed(report["error"], code, result)
    return result


class _Function:
    """Runs a function of this process as the job of ``multilock run``.

    The job that multilock starts is a shell script. It reports that it has started, and reads the exit code of
    the function from its standard input. If this process dies, the script reads end-of-file and terminates
    multilock, so that nothing is recorded. multilock ends the script early only if the lock is lost.
    """

    SCRIPT = 'echo begin; read -r code || { kill -TERM "$PPID"; exit 143; }; exit "$code"'

    def __init__(self, args: Sequence[str], label: str, function: Callable[[], Any]) -> None:
        self._args = [*args, f"--label={label}", "--", "sh", "-c", self.SCRIPT]
        self._function = function
        self._finished = threading.Event()
        self._interrupted = False

    def run(self, check: bool) -> Result:
        script_stdin, write_fd = os.pipe()
        read_fd, script_stdout = os.pipe()
        with open(read_fd, "rb") as replies, open(write_fd, "wb", 0) as orders:
            with open(script_stdin, "rb") as stdin, open(script_stdout, "wb") as stdout:
                self._replies, self._orders = replies, orders
                self._call = _program.Run(self._args, stdin=stdin, stdout=stdout)
                try:
                    self._ended = _program.in_thread(self._call.run)
                    return self._run_function(check)
                except BaseException:
                    self._call.cancel()
                    raise

    def _run_function(self, check: bool) -> Result:
        if self._replies.readline() != b"begin\n":
            self._ended.result()
            return _result(self._call, check)
        threading.Thread(target=self._watch_script, args=(threading.current_thread(),), daemon=True).start()
        try:
            value = self._function()
        except KeyboardInterrupt:
            if not self._interrupted:
                self._finished.set()
                raise  # without an exit code, nothing is recorded
        except BaseException:
            self._report(1)
            raise
        else:
            self._report(0)
            if not self._interrupted:
                return _result(self._call, check, value)
        self._ended.result()
        message = (self._call.report() or {}).get("error") or self._call.messages
        raise _program.error_for(self._call.code or 122, message)

    def _report(self, code: int) -> None:
        """Report the function's exit code to the script, and wait until multilock has recorded it."""
        self._finished.set()
        try:
            self._orders.write(b"%d\n" % code)
            self._orders.close()
        except BrokenPipeError:
            pass
        self._ended.result()

    def _watch_script(self, thread: threading.Thread) -> None:
        self._replies.read()  # returns when the script ends
        if not self._finished.is_set():
            self._interrupted = True
            interrupt(thread)
