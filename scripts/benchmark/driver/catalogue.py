"""The peers: libraries, each run by a worker with the protocol of ../README.md, and commands."""

from dataclasses import dataclass
from typing import Any

from .needs import BENCHMARK, Debian, Go, Nothing, Npm, Python, cache

OURS = "multilock"


@dataclass(frozen=True)
class Library:
    name: str
    needs: Any
    argv: tuple  # the worker, to which the directory is appended
    waits: str  # how it waits, for the table


@dataclass(frozen=True)
class Command:
    name: str
    needs: Any
    argv: tuple  # without the command that it runs; {} is the directory of the lock
    waiting: tuple = ()  # the same, but waits for the lock; empty if it uses no lock


def python(lock):
    return ("/usr/bin/python3", str(BENCHMARK / "peers/python/worker.py"), lock)


OURS_LIBRARY = Go("scripts/benchmark/ours", "ours")
# The build tags of multilock-full and multilock; see scripts/build.
OURS_COMMAND = Go("cmd/multilock", "multilock", tags="urfave_cli_no_docs")
FILES_COMMAND = Go("cmd/multilock", "multilock-files", tags="urfave_cli_no_docs,no_mongodb,no_cloudshell,no_etcd,no_postgres,no_s3,no_ping")
GOFRS = Go("scripts/benchmark/peers/go", "gofrs", "github.com/gofrs/flock")
RUN = ("run", "-d", "{}", "-n", "bench")


def multilock(program):
    call = (str(program.binary), *RUN)
    return ((*call, "--"), (*call, "--wait", "forever", "--"))


LIBRARIES = (
    Library(OURS, OURS_LIBRARY, (str(OURS_LIBRARY.binary),), "backs off, woken by inotify"),
    Library("flufl.lock", Debian("python3-flufl.lock"), python("flufl"), "polls at random, up to 2 s (fixed)"),
    Library("filelock-soft", Debian("python3-filelock"), python("filelock-soft"), "polls every 50 ms (default)"),
    Library("filelock", Debian("python3-filelock"), python("filelock"), "polls every 50 ms (default)"),
    Library(
        "proper-lockfile",
        Npm("proper-lockfile"),
        ("node", str(BENCHMARK / "peers/node/worker.js")),
        "polls every 50 ms (our choice; does not wait by default)",
    ),
    Library("gofrs-flock", GOFRS, (str(GOFRS.binary),), "queues in the kernel"),
    Library("multilock-python", Python(), python("multilock-python"), "polls every 50 ms (our choice; cannot wait)"),
)

COMMANDS = (
    Command(OURS, OURS_COMMAND, *multilock(OURS_COMMAND)),
    Command("multilock-files", FILES_COMMAND, *multilock(FILES_COMMAND)),
    Command("flock", Debian("util-linux"), ("flock", "{}/lock"), ("flock", "{}/lock")),
    Command("lckdo", Debian("moreutils"), ("lckdo", "{}/lock"), ("lckdo", "-w", "{}/lock")),
    Command(
        "dotlockfile",
        Debian("liblockfile-bin"),
        ("dotlockfile", "-l", "{}/lock"),
        ("dotlockfile", "-l", "-r", "-1", "{}/lock"),
    ),
    Command("no lock", Nothing(), ()),
)


def environment(base):
    """Return the environment of the workers: Node.js finds its packages, and Python writes no bytecode."""
    return {**base, "NODE_PATH": str(cache() / "node" / "node_modules"), "PYTHONDONTWRITEBYTECODE": "1"}
