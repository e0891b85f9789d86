from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Callable

import pytest

import multilock

Start = Callable[[str], "subprocess.Popen[str]"]


def test_a_command_runs_once(shared: Path) -> None:
    told = shared / "told"
    command = ["sh", "-c", 'echo x >> "$1"', "sh", str(told)]
    first = multilock.run_once("page", command)
    again = multilock.run_once("page", command)
    assert (first.ran, first.exit) == (True, 0)
    assert (again.ran, again.exit) == (False, 0)
    assert told.read_text() == "x\n"


def test_a_commands_failure_is_its_result(shared: Path) -> None:
    assert multilock.run_once("bad", ["sh", "-c", "exit 7"]).exit == 7
    again = multilock.run_once("bad", ["sh", "-c", "exit 0"])
    assert (again.ran, again.exit) == (False, 7)
    retried = multilock.run_once("worse", ["sh", "-c", 'test "$MULTILOCK_ATTEMPT" = 2'], retries=1)
    assert (retried.ran, retried.exit, retried.attempt) == (True, 0, 2)


def test_a_function_runs_once(shared: Path) -> None:
    calls = []
    first = multilock.run_once("f", lambda: calls.append(1) or "value")
    again = multilock.run_once("f", lambda: calls.append(2))
    assert (first.ran, first.exit, first.value) == (True, 0, "value")
    assert (again.ran, again.value) == (False, None)
    assert calls == [1]


def test_a_functions_exception_is_a_failure(shared: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        multilock.run_once("f", lambda: 1 // 0)
    again = multilock.run_once("f", lambda: None)
    assert (again.ran, again.exit) == (False, 1)


def test_a_function_whose_lock_is_lost(shared: Path) -> None:
    def work() -> None:
        subprocess.run([multilock.program(), "break", "--force", "--now", "f"], check=True, capture_output=True)
        time.sleep(60)

    with pytest.raises(multilock.Lost):
        multilock.run_once("f", work, ttl=4)
    assert multilock.run_once("f", lambda: None, wait=60).ran  # nothing was recorded


def test_who_comes_while_it_runs(shared: Path) -> None:
    def work() -> None:
        with pytest.raises(multilock.Held):
            multilock.run_once("f", lambda: None)

    assert multilock.run_once("f", work).exit == 0


def test_an_interpreter_that_dies_has_not_run_it(shared: Path, python: Start) -> None:
    other = python("import multilock, time; multilock.run_once('f', lambda: (print('begun', flush=True), time.sleep(60)))")
    assert other.stdout and other.stdout.readline() == "begun\n"
    other.kill()
    assert multilock.run_once("f", lambda: None, wait=60).ran


def test_a_list_and_its_barrier(shared: Path) -> None:
    jobs = [("one", "exit 0"), ("two", ["sh", "-c", "exit 3"]), ("three", "true")]
    report = multilock.batch(jobs, workers=2, group="g")
    assert (report.total, report.done, report.failed, report.ok) == (3, 2, 1, False)
    assert [failure["name"] for failure in report.failures] == ["two"]
    barrier = multilock.wait(expect=3, timeout=60, group="g")
    assert not barrier.ok and [failure["name"] for failure in barrier.failed] == ["two"]
    assert multilock.wait(["one", "three"], timeout=60, group="g").ok
    with pytest.raises(multilock.TimedOut):
        multilock.wait(["one", "four"], timeout=0.3, group="g")


def test_a_job_is_one_line(shared: Path) -> None:
    with pytest.raises(ValueError, match="one line"):
        multilock.batch(["echo\nrm -rf x"])
    with pytest.raises(TypeError, match="list of words"):
        multilock.run_once("x", "echo hello")
