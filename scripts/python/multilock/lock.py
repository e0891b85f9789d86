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
    """A lock on the shared directory, held by this process.

    name      the lock's name, in its group
    dir       the shared directory; or source, a URL (see ``multilock help sources``)
    wait      how long to wait for it, in seconds; None waits for ever, 0 not at all (Held is raised)
    ttl       how long it stays held without a heartbeat from this host (default: two minutes)
    fair      stand in line with all who say so: who came first is first
    on_lost   what happens when the lock is lost while it is held:
              "raise"   the thread that acquired it is interrupted (the main thread at once, as by Ctrl-C,
                        another before its next step in Python), and Lost is raised where the block ends
              "ignore"  nothing; look at ``lost``
              a function, which is called with this lock, in a thread of its own

    A lock is held once at a time; it is not reentrant. Two Locks of one name exclude each other
    within a process, too. After a fork it belongs to the process that acquired it.
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
            raise ValueError('on_lost is "raise", "ignore" or a function')
        self.name = name
        self.place = Place(dir, group, source, trust)
        self.token: Optional[str] = None
        """Names this holding; ``multilock release --token`` gives it back from elsewhere."""
        self.fence: Optional[int] = None
        """Grows with each holder: hand it to what can refuse writes of an older one. None if the source has none."""
        self.lost = threading.Event()
        """Set when the lock was lost while it was held."""
        self._wait, self._ttl, self._fair, self._on_lost = wait, ttl, fair, on_lost
        self._owner = 0  # the process that acquired it
        self._thread = threading.main_thread()
        self._watch: Optional[_Watch] = None

    def acquire(self, wait: Optional[Seconds] = None) -> "Lock":
        """Takes the lock, or raises Held, TimedOut or another Error. ``wait`` is used in place of the lock's own."""
        if self.held:
            raise RuntimeError(f"{self.name}: this Lock is held already; it is not reentrant")
        call = _program.Call(self._acquire_words(wait))
        try:
            _program.apart(call.run).result()
            self._begin(call.answer())
        except BaseException:
            self._undo(call)
            raise
        return self

    def release(self) -> None:
        """Gives the lock back. Raises Lost if it was lost before."""
        token = self._end()
        if self.lost.is_set():
            raise errors.Lost(f"{self.name}: the lock was lost while it was held", 122)
        _program.complete(_program.Call(self._release_words(token))).answer()

    @property
    def held(self) -> bool:
        """Whether this process has it, as far as is known."""
        return self.token is not None and self._owner == os.getpid() and not self.lost.is_set()

    def check(self) -> float:
        """Asks the source; returns for how many seconds the lock is safe if nothing renews it, or raises Lost."""
        if self.token is None:
            raise RuntimeError(f"{self.name}: this Lock is not held")
        seen = json.loads(_program.call(["status", "--json", *self.place.options(), "--", self.name], fine=(0, 121)))
        for lock in seen["locks"]:
            if lock.get("token") == self.token and not self.lost.is_set():
                return max(0.0, (lock["ttl_seconds"] or 0) - (lock["heartbeat_age_seconds"] or 0))
        raise errors.Lost(f"{self.name}: the lock was lost while it was held", 122)

    def __repr__(self) -> str:
        place = ", ".join(f"{name}={value!r}" for name, value in vars(self.place).items() if value is not None)
        state = "held" if self.held else "lost" if self.lost.is_set() else "held by the process that forked this one" if self._forked() else "not held"
        return f"<{type(self).__name__} {self.name!r}{place and f' ({place})'}: {state}>"

    def __enter__(self) -> "Lock":
        return self.acquire()

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if self._forked():
            return  # it is the other process that releases the lock
        interrupted = isinstance(error, KeyboardInterrupt) and self._watch is not None and self._watch.interrupted
        try:
            self.release()
        except errors.Lost as lost:
            if interrupted or error is None:
                raise lost from None
            # The block's own error says more; the loss is to be seen all the same.
            error.__context__ = error.__context__ or lost
        except KeyboardInterrupt:
            if self.held:
                self.release()
            raise

    def _acquire_words(self, wait: Optional[Seconds]) -> list[str]:
        wait = self._wait if wait is None else wait
        limit = FOREVER if wait is None else None if wait == 0 else _program.duration(wait)
        ttl = None if self._ttl is None else _program.duration(self._ttl)
        own = _program.options(name=self.name, pid=os.getpid(), wait=limit, ttl=ttl, fair=self._fair)
        return ["acquire", "--json", *self.place.options(), *own]

    def _release_words(self, token: str) -> list[str]:
        return ["release", "--quiet", *self.place.options(), *_program.options(name=self.name, token=token)]

    def _begin(self, answer: str) -> None:
        told = json.loads(answer)
        self.lost.clear()
        self.token, self.fence, self._owner = told["token"], told.get("fence"), os.getpid()
        self._thread = threading.current_thread()
        self._watch = _Watch(told["keeper_pid"], self._keeper_ended)

    def _undo(self, call: _program.Call) -> None:
        """Of an acquisition that ends with an exception: the lock is released if it was granted all the same."""
        call.abandon()
        if self._owner == os.getpid():  # a watch of the process that forked this one is left alone
            watch, self._watch, self.token = self._watch, None, None
            if watch is not None:
                watch.stop()
        token = errors.parsed(call.output).get("token")
        if token:
            _program.complete(_program.Call(self._release_words(token)))

    def _forked(self) -> bool:
        return self.token is not None and self._owner != os.getpid()

    def _end(self) -> str:
        if self.token is None or self._owner != os.getpid():
            raise RuntimeError(f"{self.name}: this Lock is not held by this process")
        if self._watch is not None:
            self._watch.stop()
        token, self.token = self.token, None
        return token

    def _keeper_ended(self, watch: "_Watch") -> None:
        """The keeper ends when the lock is lost. Should it have been killed, nobody renews the lock: that is no better."""
        self.lost.set()
        if callable(self._on_lost):
            self._on_lost(self)
        elif self._on_lost == "raise":
            watch.interrupted = True
            interrupt(self._thread)


def interrupt(thread: threading.Thread) -> None:
    """Raises KeyboardInterrupt in the thread; in the main one also out of a system call that blocks."""
    if thread is threading.main_thread() and signal.getsignal(signal.SIGINT) not in (signal.SIG_IGN, signal.SIG_DFL, None):
        signal.pthread_kill(thread.ident or 0, signal.SIGINT)
    else:  # a shell has SIGINT ignored by what it runs in the background
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt))


class _Watch:
    """A thread that waits for the end of the keeper."""

    def __init__(self, pid: int, ended: Callable[["_Watch"], None]) -> None:
        self.interrupted = False
        self._ended = ended
        self._lock = threading.Lock()
        self._stopped = False
        self._wake, told = os.pipe()
        self._told: Optional[int] = told
        self._thread = threading.Thread(target=self._run, args=(pid,), name=f"multilock-{pid}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """After this the keeper's end means nothing any more."""
        try:
            self._stop()
        except KeyboardInterrupt:
            if not self.interrupted:
                raise
            self._stop()  # it was ours, and came as the block ended: the caller sees that the lock is lost

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
        if self._told is not None:
            told, self._told = self._told, None
            with contextlib.suppress(BrokenPipeError):  # the thread has ended
                os.write(told, b"x")  # to close it is not enough: a forked process may have it, too
            os.close(told)
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self, pid: int) -> None:
        try:
            ended = self._wait(pid)
        finally:
            os.close(self._wake)
        with self._lock:
            stopped = self._stopped
        if ended and not stopped:
            self._ended(self)

    def _wait(self, pid: int) -> bool:
        """True if the process ended, False if we were woken."""
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            return True
        except (AttributeError, OSError):  # not on Linux, or an old kernel
            return self._poll(pid)
        try:
            poll = select.poll()  # select() takes no descriptor above 1023
            poll.register(process, select.POLLIN)
            poll.register(self._wake, select.POLLIN)
            return all(ready != self._wake for ready, _ in poll.poll())
        finally:
            os.close(process)

    def _poll(self, pid: int) -> bool:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
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
    """The same for asyncio: ``async with multilock.AsyncLock("name", dir=…) as lock``.

    With ``on_lost="raise"`` the task that acquired it is cancelled when the lock is lost, and Lost is
    raised where the block ends.
    """

    _task: Optional["asyncio.Task[object]"] = None

    async def acquire(self, wait: Optional[Seconds] = None) -> "AsyncLock":  # type: ignore[override]
        if self.held:
            raise RuntimeError(f"{self.name}: this Lock is held already; it is not reentrant")
        call = _program.Call(self._acquire_words(wait))
        try:
            await _outside(call.run)
            self._task, self._loop = asyncio.current_task(), asyncio.get_running_loop()
            self._begin(call.answer())
        except BaseException:
            await asyncio.shield(_outside(lambda: self._undo(call)))
            raise
        return self

    async def release(self) -> None:  # type: ignore[override]
        token = self._end()
        if self.lost.is_set():
            raise errors.Lost(f"{self.name}: the lock was lost while it was held", 122)
        call = _program.Call(self._release_words(token))
        await _outside(call.run)
        call.answer()

    async def __aenter__(self) -> "AsyncLock":
        return await self.acquire()

    async def __aexit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        if self._forked():
            return
        interrupted = self._watch is not None and self._watch.interrupted and isinstance(error, asyncio.CancelledError)
        try:
            await asyncio.shield(self.release())
        except errors.Lost as lost:
            if interrupted and hasattr(self._task, "uncancel"):
                self._task.uncancel()  # type: ignore[union-attr]
            if interrupted or error is None:
                raise lost from None

    def __enter__(self) -> "Lock":
        raise TypeError('an AsyncLock wants "async with"')

    def _keeper_ended(self, watch: _Watch) -> None:
        self.lost.set()
        if callable(self._on_lost):
            self._loop.call_soon_threadsafe(self._on_lost, self)
        elif self._on_lost == "raise" and self._task is not None:
            watch.interrupted = True
            self._loop.call_soon_threadsafe(self._task.cancel)


def _outside(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Does the work in a thread; it goes on if the task that waits for it is cancelled."""
    return asyncio.wrap_future(_program.apart(work))
