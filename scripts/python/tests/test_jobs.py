from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import pytest

import multilock

Start = Callable[[str], "subprocess.Popen[str]"]


def test_a_command_runs_once(shared: Path) -> None:
    log = shared / "log"
    command = ["sh", "-c", 'echo x >> "$1"', "sh", str(log)]
    first = multilock.run_once("page", command)
    again = multilock.run_once("page", command)
    assert (first.ran, first.exit) == (True, 0)
    assert (again.ran, again.exit) == (False, 0)
    assert log.read_text() == "x\n"


def test_a_failed_command_is_a_result(shared: Path) -> None:
    assert multilock.run_once("bad", ["sh", "-c", "exit 7"]).exit == 7
    with pytest.raises(multilock.Failed, match="failed permanently") as failed:
        multilock.run_once("bad", ["sh", "-c", "exit 0"])
    again = multilock.run_once("bad", ["sh", "-c", "exit 0"], check=False)
    assert failed.value.result == again
    assert (again.ran, again.exit, again.ok, failed.value.code) == (False, 7, False, 7)
    assert multilock.run_once("own", ["sh", "-c", "exit 122"]).exit == 122  # the job's own code, not that of a lost lock
    with pytest.raises(multilock.Error, match="command not found") as error:
        multilock.run_once("none", ["/no/such/command"])
    assert error.value.code == 127
    retried = multilock.run_once("worse", ["sh", "-c", 'test "$MULTILOCK_ATTEMPT" = 2'], retries=1)
    assert (retried.ran, retried.exit, retried.attempt) == (True, 0, 2)
    later = multilock.run_once("worse", ["false"], retries=1)
    assert (later.ran, later.ok, later.attempt) == (False, True, 2)


def test_a_function_runs_once(shared: Path) -> None:
    calls = []
    first = multilock.run_once("f", lambda: calls.append(1) or "value")
    again = multilock.run_once("f", lambda: calls.append(2))
    assert (first.ran, first.exit, first.value) == (True, 0, "value")
    assert (again.ran, again.value) == (False, None)
    assert calls == [1]


def test_an_exception_is_recorded_as_a_failure(shared: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        multilock.run_once("f", lambda: 1 // 0)
    with pytest.raises(multilock.Failed):
        multilock.run_once("f", lambda: None)
    again = multilock.run_once("f", lambda: None, check=False)
    assert (again.ran, again.exit) == (False, 1)


def test_a_function_whose_lock_is_lost(shared: Path) -> None:
    def work() -> None:
        subprocess.run([multilock.program(), "break", "--force", "--now", "f"], check=True, capture_output=True)
        time.sleep(60)

    with pytest.raises(multilock.Lost):
        multilock.run_once("f", work, ttl=4)
    assert multilock.run_once("f", lambda: None, wait=60).ran  # nothing was recorded


def test_an_interrupted_function_is_run_again(shared: Path) -> None:
    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    interrupts = []

    def interrupted(number: int, frame: Any) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            multilock.run_once("f", work)
        time.sleep(0.5)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert len(interrupts) == 1, "the end of the program must not cause a second interrupt"
    assert multilock.run_once("f", lambda: "value").value == "value"


def test_a_running_job_is_held(shared: Path) -> None:
    def work() -> None:
        with pytest.raises(multilock.Held):
            multilock.run_once("f", lambda: None)

    assert multilock.run_once("f", work).exit == 0


def test_a_killed_interpreter_records_nothing(shared: Path, python: Start) -> None:
    other = python("import multilock, time; multilock.run_once('f', lambda: (print('begun', flush=True), time.sleep(60)))")
    assert other.stdout and other.stdout.readline() == "begun\n"
    other.kill()
    assert multilock.run_once("f", lambda: None, wait=60).ran


def test_a_list_and_its_barrier(shared: Path) -> None:
    jobs = [("one", "exit 0"), ("two", ["sh", "-c", "exit 3"]), ("three", "true")]
    report = multilock.batch(jobs, workers=2, group="g")
    assert (report.total, report.done, report.failed, report.ok) == (3, 2, 1, False)
    assert [failure["name"] for failure in report.failures] == ["two"]
    with pytest.raises(multilock.Failed, match="two") as failed_jobs:
        multilock.wait(expect=3, timeout=60, group="g")
    barrier = multilock.wait(expect=3, timeout=60, group="g", check=False)
    assert repr(barrier) == repr(failed_jobs.value.result) == "Barrier(ok=False, failures=['two'], dead=[])"
    assert repr(report) == "Batch(total=3, done=2, unfinished=0, failed=1: ['two'])"
    assert not barrier.ok and [failure["name"] for failure in barrier.failures] == ["two"]
    assert multilock.wait(["one", "three"], timeout=60, group="g").ok
    with pytest.raises(multilock.TimedOut):
        multilock.wait(["one", "four"], timeout=0.3, group="g")


@pytest.mark.parametrize(
    "command",
    [
        "echo hello >&2",
        "echo \"{'loss': 0.25}\" >&2",
        "echo '{\"level\":\"info\"' >&2",
        "echo '{\"ran\": true, \"exit\": 0, \"attempt\": 77}' >&2; exit 3",
        "printf 'caf\\351\\n' >&2",
        "head -c 300000 /dev/zero >&2",
    ],
)
def test_a_command_inherits_the_standard_streams(shared: Path, python: Start, tmp_path: Path, command: str) -> None:
    program = f"import multilock; r = multilock.run_once('x', ['sh', '-c', {command!r}]); print(r.ran, r.exit, r.attempt)"
    with open(tmp_path / "stderr", "wb") as stderr:
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=stderr, check=True)
    assert done.stdout == b"True %d 1\n" % (3 if "exit 3" in command else 0)
    expected = subprocess.run(["sh", "-c", command], capture_output=True, check=False).stderr
    assert (tmp_path / "stderr").read_bytes() == expected


def test_background_processes_are_not_waited_for(shared: Path) -> None:
    began = time.monotonic()
    assert multilock.run_once("daemon", ["sh", "-c", "sleep 30 & echo $! >" + str(shared / "pid")]).ok
    assert time.monotonic() - began < 20
    os.kill(int((shared / "pid").read_text()), signal.SIGKILL)


def test_arguments_and_names_of_any_bytes(shared: Path) -> None:
    latin = os.fsdecode(b"caf\xe9")
    assert multilock.run_once(latin, ["sh", "-c", 'printf %s "$1" >"$2"', "sh", latin, shared / latin]).ok
    assert (shared / latin).read_bytes() == b"caf\xe9"
    assert multilock.run_once(latin, ["false"]).ok
    directory = shared / os.fsdecode(b"dir\xe9")
    directory.mkdir()
    assert multilock.run_once(latin, ["true"], dir=directory).ran
    assert multilock.batch(["true"], dir=os.fsencode(directory), group="g").ok  # type: ignore[arg-type]


def test_jobs_may_contain_any_character_but_nul(shared: Path) -> None:
    log = shared / "log"

    def append(*args: str) -> list[str]:
        return ["sh", "-c", 'printf "<%s>" "$@" >>"$0"', str(log), *args]

    args = ["a\tb", "c\r", "#", "BARRIER", "two\nlines", "it's", os.fsdecode(b"\xe9"), ""]
    jobs = [("#1", append(*args)), append("no name"), ("BARRIER", "# no comment\n" + "printf named >>" + str(log)), "NEEDS=1; #x\tx", ("a\tb", "true")]
    report = multilock.batch(jobs, workers=1, group="g")
    assert report.ok and report.total == 5, report.failures
    want = "".join(f"<{arg}>" for arg in args) + "<no name>named"
    assert log.read_bytes() == os.fsencode(want)
    assert multilock.wait(["#1", "2", "BARRIER", "4", "a\tb"], timeout=60, group="g").ok
    with pytest.raises(multilock.Error, match="job 2: .*no command"):
        multilock.batch(["true", ""], group="h")
    with pytest.raises(ValueError, match="NUL"):
        multilock.batch(["a\0b"])
    with pytest.raises(TypeError, match="a tuple must be a name and a command"):
        multilock.batch([("echo", "a", "b")])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="list of arguments"):
        multilock.run_once("x", "echo hello")


def test_an_interrupt_ends_the_command(shared: Path, python: Start) -> None:
    """An interrupt at any time leaves no program running."""
    for delay in (0.0, 0.002, 0.01, 0.05, 0.3):
        name = f"x{delay}"
        timer = threading.Timer(delay, os.kill, [os.getpid(), signal.SIGINT])
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            multilock.run_once(name, ["sleep", "60"])
        timer.join()
        multilock.Lock(name, wait=0).acquire().release()
