"""The multilock program: where it is, and how it is called."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Sequence, Union

from . import errors

Seconds = Union[int, float, str]
"""A number of seconds, or a text as on the command line: "90s", "5m", "1d"."""

FOREVER = "forever"


def program() -> str:
    """The program that is called: $MULTILOCK_PROGRAM, the one in this package, or that of $PATH."""
    named = os.environ.get("MULTILOCK_PROGRAM")
    if named:
        return named
    ours = Path(__file__).parent / "bin" / ("multilock.exe" if os.name == "nt" else "multilock")
    if ours.exists():
        return str(ours)
    found = shutil.which("multilock")
    if found is None:
        raise errors.Error("there is no multilock program: not in this package, and not in $PATH")
    return found


def version() -> str:
    """The program's version."""
    return call(["--version"]).split()[1]


def duration(seconds: Seconds) -> str:
    """A span of time as the program wants it."""
    return seconds if isinstance(seconds, str) else f"{seconds:.3f}s"


@dataclass(frozen=True)
class Place:
    """Where locks live. Without ``dir`` and ``source``, $MULTILOCK_DIR or $MULTILOCK_SOURCE says it."""

    dir: Optional[Union[str, "os.PathLike[str]"]] = None
    group: Optional[str] = None
    source: Optional[str] = None
    trust: Optional[str] = None

    def options(self) -> list[str]:
        given = {"--dir": self.dir, "--group": self.group, "--source": self.source, "--trust": self.trust}
        return [f"{option}={os.fspath(value)}" for option, value in given.items() if value is not None]


def options(**given: Any) -> list[str]:
    """Command-line options of keyword arguments; None and False are left out."""
    words = []
    for name, value in given.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            words.append(option)
        elif value is not None and value is not False:
            words.append(f"{option}={value}")
    return words


def environment() -> dict[str, str]:
    """Ours, but a lock that this process itself runs under is not the one that is asked for."""
    return {name: value for name, value in os.environ.items() if name != "MULTILOCK_TOKEN"}


def call(words: Sequence[str], fine: Sequence[int] = (0,)) -> str:
    """What the program prints; raises an Error if its exit code is none of those that are fine."""
    done = subprocess.run([program(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(), check=False)
    if done.returncode not in fine:
        raise errors.of(done.returncode, done.stderr)
    return done.stdout
