"""Tests of map and results."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

import pytest

import multilock

SCRIPT = '''
import dataclasses, os, pathlib, sys, time
import multilock

@dataclasses.dataclass(frozen=True)
class Page:
    number: int

def convert(page):
    shared = pathlib.Path(os.environ["MULTILOCK_DIR"])
    with open(shared / "log", "a") as log:
        log.write(f"{page.number}\\n")
    print("converting", page.number)
    if page.number == 3 and (shared / "slow").exists():
        (shared / "slow").unlink()
        (shared / "sleeping").touch()
        time.sleep(600)
    return Page(page.number * 10)

if __name__ == "__main__":
    pages = [Page(n) for n in range(1, 13)]
    for page in multilock.map(convert, pages, group="pages", workers=2, options=["--ttl=4s"]):
        print(page.number)
'''


def double(number: int) -> int:
    with open(Path(os.environ["MULTILOCK_DIR"]) / "log", "a", encoding="utf-8") as log:
        log.write(f"{number}\n")
    return 2 * number


def size_of(words: "set[str]") -> int:
    return len(words)


class Worse(Exception):
    def __init__(self, one: int, other: int) -> None:
        super().__init__("cannot be pickled")


def fail_in_many_ways(number: int) -> Any:
    if number == 1:
        raise ZeroDivisionError("one")
    if number == 2:
        raise Worse(1, 2)
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 4:
        return (lambda: None)
    if number == 5:
        sys.exit(0)
    if number == 7:
        os._exit(0)
    return number


def flaky(number: int) -> int:
    if os.environ["MULTILOCK_ATTEMPT"] == "1":
        raise ValueError("first attempt")
    return number


def flag(number: int) -> int:
    if number == 130:
        raise ValueError(number)
    return number


@pytest.fixture
def script(shared: Path) -> Path:
    path = shared / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def hosts(script: Path) -> Iterator[Any]:
    """A function that starts the script in a session of its own, which is killed after the test."""
    started: list[subprocess.Popen[str]] = []

    def start() -> "subprocess.Popen[str]":
        started.append(subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        kill(process)
        process.communicate()


def kill(process: "subprocess.Popen[str]") -> None:
    """Kill all processes of a session, as if its host died."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if os.getsid(int(entry.name)) == process.pid:
                    os.kill(int(entry.name), signal.SIGKILL)
            except ProcessLookupError:
                pass


def logged(shared: Path) -> list[int]:
    return sorted(int(line) for line in (shared / "log").read_text().split())


def test_map_in_order_and_once(shared: Path) -> None:
    assert list(multilock.map(double, range(5), group="g")) == [0, 2, 4, 6, 8]
    assert list(multilock.map(double, range(5), group="g")) == [0, 2, 4, 6, 8]
    assert logged(shared) == [0, 1, 2, 3, 4]
    assert list(multilock.results("g")) == [(n, 2 * n) for n in range(5)]
    assert list(multilock.map(double, [], group="h")) == []
    assert list(multilock.results("none")) == []


def test_map_rejects_functions_that_a_worker_cannot_import(shared: Path, python: Any) -> None:
    def inner(number: int) -> int:
        return number

    local: "list[Any]" = [lambda number: number, inner]
    for function in local:
        with pytest.raises(TypeError, match="top level of a module"):
            multilock.map(function, [1], group="g")
    with pytest.raises(TypeError, match="item 2 cannot be pickled"):
        multilock.map(str, [1, lambda: None], group="g")
    with pytest.raises(TypeError, match="is not a function"):
        multilock.map("double", [1], group="g")  # type: ignore[arg-type]
    interactive = python("import multilock\ndef f(x): pass\ntry: multilock.map(f, [1], group='g')\nexcept TypeError as error: print(error)")
    assert "interactive session" in interactive.communicate()[0]
    piped = subprocess.run([sys.executable, "-"], input="import multilock\nprint(list(multilock.map(len, ['ab'], group='piped')))", capture_output=True, text=True, check=False)
    assert (piped.stdout, piped.stderr) == ("[2]\n", "")
    with pytest.raises(ValueError, match="group"):
        multilock.map(double, [1], group="")


def test_map_needs_a_main_guard(shared: Path) -> None:
    path = shared / "bare.py"
    path.write_text("import multilock\ndef f(x): return x\nmultilock.map(f, [1], group='g')\n")
    got = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert got.returncode == 1
    assert 'if __name__ == "__main__"' in got.stderr
    assert list(multilock.results("g")) == []


def test_map_failures_are_recorded(shared: Path) -> None:
    values = multilock.map(fail_in_many_ways, [6, 1, 2, 3, 4, 5, 7], group="g")
    assert next(values) == 6
    with pytest.raises(ZeroDivisionError, match="one") as raised:
        next(values)
    assert "in fail_in_many_ways" in str(raised.value.__cause__)
    found = [value for _, value in multilock.results("g")]
    assert [type(value) for value in found] == [int, ZeroDivisionError, multilock.Failed, multilock.Failed, TypeError, SystemExit, multilock.Failed]
    assert "Worse: cannot be pickled" in str(found[2])
    assert "code 137" in str(found[3]) and "logs 4" in str(found[3])
    assert "item 7: its process ended with code 1" in str(found[6])
    log = subprocess.run([multilock.program(), "-g", "g", "logs", "2"], capture_output=True, text=True, check=True).stdout
    assert "Traceback (most recent call last)" in log and "ZeroDivisionError: one" in log


def test_map_retries(shared: Path) -> None:
    assert list(multilock.map(flaky, [1, 2], group="g", retries=1)) == [1, 2]
    assert list(multilock.results("g")) == [(1, 1), (2, 2)]


def test_map_compares_items(shared: Path) -> None:
    words = [{"a", "b", "c", "d"}, {"e"}]
    assert list(multilock.map(size_of, words, group="g")) == [4, 1]
    assert list(multilock.map(size_of, [set("dcba"), {"e"}], group="g")) == [4, 1]  # equal sets with different pickles
    others: "list[tuple[Any, Any]]" = [(size_of, [{"x"}, {"e"}]), (size_of, words[:1]), (len, words)]
    for function, items in others:
        with pytest.raises(multilock.Error, match="clean --results") as rejected:
            multilock.map(function, items, group="g")
    subprocess.run(["sh", "-c", f"multilock() {{ '{multilock.program()}' \"$@\"; }}; {str(rejected.value).rpartition(': ')[2]}"], check=True, stdout=subprocess.DEVNULL)
    assert list(multilock.results("g")) == []
    assert list(multilock.map(size_of, [{"x"}], group="g")) == [1]
    assert list(multilock.results("g")) == [({"x"}, 1)]


def test_map_of_a_long_list(shared: Path) -> None:
    """The jobs are claimed in chunks, and the status only counts those that succeeded."""
    items = list(range(100, 140))
    values = multilock.map(flag, items, group="g", workers=4)
    with pytest.raises(ValueError, match="130"):
        list(values)
    found = list(multilock.results("g"))
    assert [item for item, _ in found] == items
    assert [value for _, value in found if not isinstance(value, ValueError)] == [item for item in items if item != 130]


def test_map_in_a_relative_directory(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shared)
    (shared / "here").mkdir()
    assert list(multilock.map(str, [1], group="g", dir="here")) == ["1"]
    assert list(multilock.results("g", dir=shared / "here")) == [(1, "1")]
    with pytest.raises(multilock.Error):
        multilock.map(str, [1], group="g", dir="nowhere")
    with pytest.raises(multilock.Error, match="shared directory"):
        multilock.map(str, [1], group="g", source=f"cook+file:{shared}?period=5m")


def test_map_starts_again_without_results(shared: Path) -> None:
    assert list(multilock.map(double, [1, 2], group="g")) == [2, 4]
    subprocess.run([multilock.program(), "-g", "g", "clean", "--results", "-q"], check=True)
    assert list(multilock.results("g")) == []
    assert list(multilock.map(double, [1, 2], group="g")) == [2, 4]
    assert logged(shared) == [1, 1, 2, 2]
    assert len(list(multilock.results("g"))) == 2


def test_map_rejects_files_of_other_users(shared: Path) -> None:
    assert list(multilock.map(double, [1], group="g")) == [2]
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    (value,) = shared.glob(".multilock/groups/g/map/*/1")
    os.chown(value, 4711, -1)
    with pytest.raises(multilock.Error, match="belongs to user 4711"):
        list(multilock.results("g"))
    (item,) = multilock.results("g", trust="4711")
    assert item == (1, 2)
    value.chmod(0o664)
    with pytest.raises(multilock.Error, match="other users may write"):
        list(multilock.results("g", trust="4711"))
    os.link(value, value.with_name("other"))
    with pytest.raises(multilock.Error, match="was not written by"):
        list(multilock.results("g", trust="any"))
    value.unlink()
    value.symlink_to("/etc/passwd")
    with pytest.raises(OSError):
        list(multilock.results("g"))


def test_map_on_two_hosts_at_once(shared: Path, hosts: Any) -> None:
    both = [hosts(), hosts()]
    for process in both:
        output, messages = process.communicate(timeout=300)
        assert process.returncode == 0, messages
        assert output.split() == [str(10 * n) for n in range(1, 13)]
    assert logged(shared) == list(range(1, 13))
    again = hosts()
    assert again.communicate(timeout=300)[0].split() == [str(10 * n) for n in range(1, 13)]
    assert logged(shared) == list(range(1, 13))


def test_map_continues_after_a_killed_host(shared: Path, hosts: Any) -> None:
    (shared / "slow").touch()
    killed = hosts()
    end = time.monotonic() + 120
    while not (shared / "sleeping").exists():
        assert time.monotonic() < end and killed.poll() is None
        time.sleep(0.05)
    kill(killed)
    output, messages = hosts().communicate(timeout=300)
    assert output.split() == [str(10 * n) for n in range(1, 13)], messages
    assert sorted(set(logged(shared))) == list(range(1, 13))
    assert logged(shared).count(3) == 2
