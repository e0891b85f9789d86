"""Fixtures. Each test has a directory of its own; MULTILOCK_PROGRAM selects the program to test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Callable, Iterator

import pytest


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which MULTILOCK_DIR names."""
    for name in ("MULTILOCK_SOURCE", "MULTILOCK_GROUP", "MULTILOCK_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MULTILOCK_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def python(shared: Path) -> Iterator[Callable[[str], "subprocess.Popen[str]"]]:
    """A function that starts another interpreter, which is killed after the test."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str) -> "subprocess.Popen[str]":
        started.append(
            subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()
