"""A lock as a context manager, for threads and for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import select
import signal
import threading
from types import TracebackType
from typing import Callable, Optional, TypeVar, Union

from . import _program, errors
from ._program import FOREVER, Place, Seconds

T = TypeVar("T")
OnLost = Union[str, Callable[["Lock"], None]]


class Lock:
    """A lock that excludes other processes and other Lock objects, on this host and on all others.

    Use it as a context manager, or call ``acquire`` and ``release``. A Lock is not reentrant. After a fork it
    belongs to the process that acquired it: a child that leaves the ``with`` block does not release it.

    Args:
        name: The lock's name in its group.
        dir: The shared directory. Default: MULTILOCK_DIR.
        group: The group of the lock. Default: MULTILOCK_GROUP.
        source: The URL of another location, instead of ``dir`` (see ``multilock help sources``).
        trust: Users whose files in the directory are trusted, separated by commas, or "any".
        wait: How long to wait for the lock. None waits forever, and 0 does not wait.
        ttl: How long the lock stays held without a heartbeat. Default: two minutes.
        fair: Queue with the other waiters that set ``fair``: first come, first served.
        on_lost: What to do if the lock is lost while it is held. "raise" interrupts the thread that acquired
            the lock, so that the ``with`` statement raises Lost: the main thread at once, as by Ctrl-C, another
            thread before its next step in Python. "ignore" only sets ``lost``. A function is called with this
            lock, in a thread of its own.

    Attributes:
        name: The lock's name.
        token: Identifies this acquisition; ``multilock release --token`` releases it from another process.
            None while the lock is not held.
        fence: The fencing token, a number that grows with each holder. Pass it to storage that rejects writes
            with a smaller number. None if the source has no fencing tokens.
        lost: A threading.Event that is set if the lock is lost while it is held.
    """

    def __init__(
        self,
        name: str,
        *,
        dir: Optional[Union[str, "os.PathLike[str]"]] = None,
        group: Optional[str] = None,
        source: Optional[str] = None,
        trust: Optional[str] = None,
        wait: Optional[Seconds] = None,
        ttl: Optional[Seconds] = None,
        fair: bool = False,
        on_lost: OnLost = "raise",
    ) -> None:
        if on_lost not in ("raise", "ignore") and not callable(on_lost):
            raise ValueError(f'on_lost must be "raise", "ignore" or a function, not {on_lost!r}')
        self.name = name
        self.place = Place(dir, group, source, trust)
        self.token: Optional[str] = None
        self.fence: Optional[int] = None
        self.lost = threading.Event()
        self._wait, self._ttl, self._fair, self._on_lost = wait, ttl, fair, on_lost
        self._owner = 0  # the process ID of the holder, to detect a fork
        self._thread = threading.main_thread()
        self._watch: Optional[_Watch] = None

    def acquire(self, wait: Optional[Seconds] = None) -> "Lock":
        """Acquire the lock.

        Args:
            wait: How long to wait, instead of the ``wait`` of this Lock.

        Returns:
            This Lock.

        Raises:
            Held: Another process holds the lock, and ``wait`` is 0.
            TimedOut: Another process held the lock until ``wait`` had passed.
            Error: The lock cannot be acquired.
            RuntimeError: This Lock is already held.
        """
        self._require_not_held()
        call = _program.Call(self._acquire_args(wait))
        try:
            _program.in_thread(call.run).result()
            self._start_holding(call.check_output())
        except BaseException:
            self._abort(call)
            raise
        return self

    def release(self) -> None:
        """Release the lock.

        Raises:
            Lost: The lock was lost while it was held.
            RuntimeError: This process does not hold the lock.
        """
        token = self._stop_holding()
        if self.lost.is_set():
            raise self._lost_error()
        _program.run_to_end(_program.Call(self._release_args(token))).check_output()

    @property
    def held(self) -> bool:
        """Whether this process holds the lock, as far as is known here; ``check`` asks the source."""
        return self.token is not None and self._owner == os.getpid() and not self.lost.is_set()

    def check(self) -> float:
        """Read from the source whether the lock is still held.

        Returns:
            For how many seconds the lock stays held even if no further heartbeat succeeds.

        Raises:
            Lost: The lock was lost while it was held.
            RuntimeError: The lock was not acquired.
        """
        if self.token is None:
            raise self._not_held_error()
        args = ["status", "--json", *self.place.options(), "--", self.name]
        status = json.loads(_program.check_output(args, expected=(0, 121)))
        for lock in status["locks"]:
            if lock.get("token") == self.token and not self.lost.is_set():
                return max(0.0, (lock["ttl_seconds"] or 0) - (lock["heartbeat_age_seconds"] or 0))
        raise self._lost_error()

    def __repr__(self) -> str:
        place = ", ".join(f"{name}={value!r}" for name, value in vars(self.place).items() if value is not None)
        return f"<{type(self).__name__} {self.name!r}{place and f' ({place})'}: {self._state()}>"

    def __enter__(self) -> "Lock":
        return self.acquire()

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._is_forked():
            return
        interrupted = isinstance(error, KeyboardInterrupt) and self._watch is not None and self._watch.interrupted
        try:
            self.release()
        except errors.Lost as lost:
            if interrupted or error is None:
                raise lost from None
            # The error of the block is more specific, so it is raised, with the loss as its context.
            error.__context__ = error.__context__ or lost
        except KeyboardInterrupt:
            if self.held:
                self.release()
            raise

    def _state(self) -> str:
        if self.held:
            return "held"
        if self.lost.is_set():
            return "lost"
        return "held by the process that forked this one" if self._is_forked() else "not held"

    def _require_not_held(self) -> None:
        if self.held:
            raise RuntimeError(f'lock "{self.name}" is already held, and a Lock is not reentrant: release it first')

    def _lost_error(self) -> errors.Lost:
        return errors.Lost(
            f'lock "{self.name}" was lost while it was held, so another process may hold it: '
            f"check what was written; for the cause see: {self.place.shell_command('history', '--', self.name)}",
            122,
        )

    def _not_held_error(self) -> RuntimeError:
        return RuntimeError(f'lock "{self.name}" is not held by this process: acquire it first')

    def _acquire_args(self, wait: Optional[Seconds]) -> list[str]:
        wait = self._wait if wait is None else wait
        limit = FOREVER if wait is None else None if wait == 0 else _program.duration(wait)
        ttl = None if self._ttl is None else _program.duration(self._ttl)
        own = _program.options(name=self.name, pid=os.getpid(), wait=limit, ttl=ttl, fair=self._fair)
        return ["acquire", "--json", *self.place.options(), *own]

    def _release_args(self, token: str) -> list[str]:
        return ["release", "--quiet", *self.place.options(), *_program.options(name=self.name, token=token)]

    def _start_holding(self, output: str) -> None:
        """Store what ``multilock acquire`` printed, and start to watch the keeper."""
        answer = json.loads(output)
        self.lost.clear()
        self.token, self.fence, self._owner = answer["token"], answer.get("fence"), os.getpid()
        self._thread = threading.current_thread()
        self._watch = _Watch(answer["keeper_pid"], self._on_keeper_ended)

    def _abort(self, call: _program.Call) -> None:
        """Cancel an acquisition, and release the lock if it was acquired nevertheless."""
        call.cancel()
        if self._owner == os.getpid():  # after a fork the watch belongs to the parent
            watch, self._watch, self.token = self._watch, None, None
            if watch is not None:
                watch.stop()
        token = _program.parse_object(call.output).get("token")
        if token:
            _program.run_to_end(_program.Call(self._release_args(token)))

    def _is_forked(self) -> bool:
        return self.token is not None and self._owner != os.getpid()

    def _stop_holding(self) -> str:
        """Stop the watch, and return the token."""
        if self.token is None or self._owner != os.getpid():
            raise self._not_held_error()
        if self._watch is not None:
            self._watch.stop()
        token, self.token = self.token, None
        return token

    def _on_keeper_ended(self, watch: "_Watch") -> None:
        # The keeper ends when the lock is lost. If it was killed, nothing renews the lock, which is as bad.
        self.lost.set()
        if callable(self._on_lost):
            self._on_lost(self)
        elif self._on_lost == "raise":
            watch.interrupted = True
            interrupt(self._thread)


def interrupt(thread: threading.Thread) -> None:
    """Raise KeyboardInterrupt in a thread. Only in the main thread this interrupts a blocking system call."""
    # A shell ignores SIGINT in its background jobs; then the signal would have no effect.
    unhandled = (signal.SIG_IGN, signal.SIG_DFL, None)
    if thread is threading.main_thread() and signal.getsignal(signal.SIGINT) not in unhandled:
        signal.pthread_kill(thread.ident or 0, signal.SIGINT)
    else:
        ident, exception = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, exception)


class _Watch:
    """A thread that calls a function when the keeper ends, unless it was stopped before."""

    def __init__(self, pid: int, on_ended: Callable[["_Watch"], None]) -> None:
        self.interrupted = False
        self._on_ended = on_ended
        self._lock = threading.Lock()
        self._stopped = False
        self._wake_fd, stop_fd = os.pipe()
        self._stop_fd: Optional[int] = stop_fd
        self._thread = threading.Thread(target=self._run, args=(pid,), name=f"multilock-{pid}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop watching. After this call the function is no longer called."""
        try:
            self._stop()
        except KeyboardInterrupt:
            if not self.interrupted:
                raise
            self._stop()  # the interrupt came from interrupt(); the caller sees that the lock is lost

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
        if self._stop_fd is not None:
            stop_fd, self._stop_fd = self._stop_fd, None
            with contextlib.suppress(BrokenPipeError):  # the thread has ended
                os.write(stop_fd, b"x")  # closing it is not enough, because a forked process may have it open
            os.close(stop_fd)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self, pid: int) -> None:
        try:
            ended = self._wait(pid)
        finally:
            os.close(self._wake_fd)
        with self._lock:
            stopped = self._stopped
        if ended and not stopped:
            self._on_ended(self)

    def _wait(self, pid: int) -> bool:
        """Return True when the process has ended, or False when the watch is stopped."""
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        except (AttributeError, OSError):  # not Linux, or an old kernel
            return self._poll(pid)
        try:
            poll = select.poll()  # select() rejects descriptors above 1023
            poll.register(process, select.POLLIN)
            poll.register(self._wake_fd, select.POLLIN)
            return all(ready != self._wake_fd for ready, _ in poll.poll())
        finally:
            os.close(process)

    def _poll(self, pid: int) -> bool:
        poll = select.poll()
        poll.register(self._wake_fd, select.POLLIN)
        while True:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            except PermissionError:
                pass
            if poll.poll(250):
                return False


class AsyncLock(Lock):
    """A Lock for asyncio: ``async with multilock.AsyncLock("name", dir="/shared") as lock``.

    It has the parameters and attributes of Lock; ``acquire`` and ``release`` are coroutines. If the lock is
    lost, ``on_lost="raise"`` cancels the task that acquired it, so that the ``async with`` statement raises
    Lost. A function given as ``on_lost`` is called in the event loop.
    """

    _task: Optional["asyncio.Task[object]"] = None

    async def acquire(self, wait: Optional[Seconds] = None) -> "AsyncLock":  # type: ignore[override]
        """Acquire the lock, like Lock.acquire. A task that is cancelled meanwhile does not hold the lock."""
        self._require_not_held()
        call = _program.Call(self._acquire_args(wait))
        try:
            await _in_thread(call.run)
            self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
            self._start_holding(call.check_output())
        except BaseException:
            await asyncio.shield(_in_thread(lambda: self._abort(call)))
            raise
        return self

    async def release(self) -> None:  # type: ignore[override]
        """Release the lock, like Lock.release."""
        token = self._stop_holding()
        if self.lost.is_set():
            raise self._lost_error()
        call = _program.Call(self._release_args(token))
        await _in_thread(call.run)
        call.check_output()

    async def __aenter__(self) -> "AsyncLock":
        return await self.acquire()

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        if self._is_forked():
            return
        cancelled = self._watch is not None and self._watch.interrupted and isinstance(error, asyncio.CancelledError)
        try:
            await asyncio.shield(self.release())
        except errors.Lost as lost:
            if cancelled and hasattr(self._task, "uncancel"):
                self._task.uncancel()  # type: ignore[union-attr]
            if cancelled or error is None:
                raise lost from None

    def __enter__(self) -> "Lock":
        raise TypeError('an AsyncLock needs "async with"; for a plain "with" use multilock.Lock')

    def _on_keeper_ended(self, watch: _Watch) -> None:
        self.lost.set()
        if callable(self._on_lost):
            self._loop.call_soon_threadsafe(self._on_lost, self)
        elif self._on_lost == "raise" and self._task is not None:
            watch.interrupted = True
            self._loop.call_soon_threadsafe(self._task.cancel)


def _in_thread(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Run a function in a thread. It continues even if the task that awaits it is cancelled."""
    return asyncio.wrap_future(_program.in_thread(work))
