from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

import multilock

Start = Callable[[str], "subprocess.Popen[str]"]


def break_lock(name: str) -> None:
    subprocess.run([multilock.program(), "break", "--force", "--now", name], check=True, capture_output=True)


def test_one_at_a_time(shared: Path) -> None:
    with multilock.Lock("one") as first:
        assert first.held and first.token
        with pytest.raises(multilock.Held, match='^lock "one" is held by '):
            multilock.Lock("one", wait=0).acquire()
        with pytest.raises(multilock.TimedOut):
            multilock.Lock("one", wait=0.2).acquire()
    assert not first.held
    with multilock.Lock("one", wait=0) as second:
        assert second.token != first.token
        assert first.fence is not None and second.fence is not None and second.fence > first.fence


def test_threads_take_turns(shared: Path) -> None:
    inside: list[int] = []
    counts = []

    def work(number: int) -> None:
        for _ in range(3):
            with multilock.Lock("turns", wait=60):
                inside.append(number)
                counts.append(len(inside))
                inside.remove(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counts == [1] * 9


def test_a_killed_interpreter_frees_the_lock(shared: Path, python: Start) -> None:
    other = python("import multilock; multilock.Lock('dead').acquire(); print('held', flush=True); input()")
    assert other.stdout and other.stdout.readline() == "held\n"
    with pytest.raises(multilock.Held):
        multilock.Lock("dead", wait=0).acquire()
    other.kill()
    with multilock.Lock("dead", wait=60) as lock:
        assert lock.held


def test_loss_interrupts_the_main_thread(shared: Path) -> None:
    lock = multilock.Lock("lost", ttl=4)
    with pytest.raises(multilock.Lost):
        with lock:
            threading.Timer(0.1, break_lock, ["lost"]).start()
            time.sleep(60)
    assert lock.lost.is_set() and not lock.held


def test_loss_interrupts_another_thread(shared: Path) -> None:
    codes = []

    def work() -> None:
        try:
            with multilock.Lock("lost", ttl=4):
                break_lock("lost")
                for _ in range(6000):
                    time.sleep(0.01)
        except multilock.Lost as lost:
            codes.append(lost.code)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert codes == [122]


def test_loss_calls_a_function(shared: Path) -> None:
    called = threading.Event()
    lock = multilock.Lock("lost", ttl=4, on_lost=lambda lost: called.set())
    with pytest.raises(multilock.Lost):
        with lock:
            break_lock("lost")
            assert called.wait(60)
            assert not lock.held


def test_check_raises_lost(shared: Path) -> None:
    with pytest.raises(multilock.Lost):
        with multilock.Lock("lost", on_lost="ignore", ttl=60) as lock:
            assert 50 < lock.check() <= 60
            break_lock("lost")
            with pytest.raises(multilock.Lost):
                lock.check()


def test_an_error_of_the_block_is_raised(shared: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with multilock.Lock("mine") as lock:
            print(1 // 0)
    assert not lock.held
    multilock.Lock("mine", wait=0).acquire().release()


def test_an_interrupt_in_the_block_is_raised(shared: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        with multilock.Lock("mine"):
            raise KeyboardInterrupt


def test_it_is_not_reentrant(shared: Path) -> None:
    with multilock.Lock("mine") as lock:
        with pytest.raises(RuntimeError, match="not reentrant"):
            lock.acquire()
    with pytest.raises(RuntimeError, match="not held"):
        lock.release()


def test_wrong_use_is_explained(shared: Path) -> None:
    with pytest.raises(ValueError, match="on_lost"):
        multilock.Lock("x", on_lost="scream")
    with pytest.raises(multilock.Error) as error:
        multilock.Lock("x", dir=shared / "nowhere" / "at all").acquire()
    assert error.value.code == 125 and "nowhere" in str(error.value)


def holds(name: str) -> bool:
    """Return whether the lock is held."""
    return subprocess.run([multilock.program(), "status", "-q", name], check=False).returncode != 0


def test_a_forked_child_leaves_the_block_alone(shared: Path, python: Start) -> None:
    other = python(
        """
import os, sys, multilock
def exit_code(child): return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
with multilock.Lock("x") as lock:
    child = os.fork()
    if child == 0:
        sys.exit(7)
    print(exit_code(child), lock.held)
    child = os.fork()
    if child == 0:
        print("forked" in repr(lock), lock.held, flush=True)
if child == 0:
    os._exit(0)
print(exit_code(child), lock)
with multilock.Lock("y") as lock:  # a child that stays alive inherits the pipe that stops the watch
    child = os.fork()
    if child == 0:
        os.read(0, 1)
        os._exit(0)
print("released", flush=True)
"""
    )
    out, _ = other.communicate(timeout=60)
    assert out == "7 True\nTrue False\n0 <Lock 'x': not held>\nreleased\n"


def test_a_forked_child_does_not_release(shared: Path) -> None:
    lock = multilock.Lock("x").acquire()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            lock.__exit__(None, None, None)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert holds("x") and lock.held
    lock.release()


def test_descriptors_above_1023(shared: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        lock = multilock.Lock("lost", ttl=4)
        with pytest.raises(multilock.Lost):
            with lock:
                break_lock("lost")
                assert lock.lost.wait(30)
    finally:
        for descriptor in many:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def slow_exit(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that ends 0.6 s after it has acquired a lock, and ignores SIGTERM."""
    path = shared / "slow_exit"
    path.write_text(f"""#!/bin/sh
trap '' TERM
{multilock.program()} "$@" || exit
if [ "$1" = acquire ]; then sleep 0.6; fi
""")
    path.chmod(0o755)
    monkeypatch.setenv("MULTILOCK_PROGRAM", str(path))


@pytest.mark.parametrize("delay", [0.0, 0.3])
def test_an_interrupt_leaves_no_lock(slow_exit: None, delay: float) -> None:
    lock = multilock.Lock("x", wait=0)
    timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGINT])
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        lock.acquire()
        time.sleep(60)
    timer.join()
    assert not lock.held and not holds("x")


def test_an_interrupt_does_not_stop_a_release(shared: Path) -> None:
    for delay in (0.0, 0.002, 0.005, 0.01, 0.02):
        lock = multilock.Lock("x", wait=0).acquire()
        timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGINT])
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            try:
                lock.release()
            finally:
                time.sleep(0.5)
        timer.join()
        if lock.held:  # the interrupt came before the release started
            lock.release()
        assert not holds("x")


def test_repr(shared: Path) -> None:
    lock = multilock.Lock("x", dir=shared, group="g")
    assert repr(lock) == f"<Lock 'x' (dir={shared!r}, group='g'): not held>"
    with lock:
        assert repr(lock).endswith(": held>")


def test_async_one_at_a_time(shared: Path) -> None:
    inside = 0

    async def work() -> None:
        nonlocal inside
        async with multilock.AsyncLock("turns", wait=60):
            inside += 1
            assert inside == 1
            await asyncio.sleep(0.01)
            inside -= 1

    async def run_all() -> None:
        await asyncio.gather(*(work() for _ in range(4)))

    asyncio.run(run_all())


def test_async_loss_ends_the_block(shared: Path) -> None:
    async def work() -> str:
        try:
            async with multilock.AsyncLock("lost", ttl=4):
                await asyncio.get_running_loop().run_in_executor(None, break_lock, "lost")
                await asyncio.sleep(60)
        except multilock.Lost:
            await asyncio.sleep(0)  # raises if the task is cancelled again
            return "lost"
        return "not lost"

    assert asyncio.run(work()) == "lost"


def test_async_cancellation_takes_no_lock(shared: Path) -> None:
    async def work() -> None:
        with multilock.Lock("mine"):
            waiting = asyncio.create_task(multilock.AsyncLock("mine").acquire())
            await asyncio.sleep(0.3)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(work())
    with multilock.Lock("mine", wait=60):
        pass


@pytest.mark.parametrize("busy", [0.0, 0.3, 1.5])
def test_async_cancellation_releases_an_acquired_lock(slow_exit: None, busy: float) -> None:
    async def work() -> None:
        lock = multilock.AsyncLock("x")
        acquiring = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        time.sleep(busy)  # the event loop is blocked when the lock is acquired
        acquiring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await acquiring
        assert not lock.held and not holds("x")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(lock.acquire(), 0.3)
        assert not lock.held and not holds("x")
        async with lock:
            assert lock.held

    asyncio.run(work())


def test_async_many_waiters(shared: Path) -> None:
    async def work() -> None:
        async with multilock.AsyncLock("x", wait=60):
            await asyncio.sleep(0.1)

    async def run_all() -> None:
        await asyncio.gather(*(work() for _ in range(12)))

    asyncio.run(run_all())
