"""Calls a function with each of many items, across all hosts. The items are the jobs of a batch.

The items and values are in the directory ``map`` of the group, beside the captured output of its jobs:

    items           a pickle of all items, written by the first host
    DIGEST/NUMBER   a pickle of the value or the exception of item NUMBER; DIGEST is the SHA-256 of ``items``

Each file is renamed into place when it is complete.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import os
import pickle
import shlex
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from multiprocessing import spawn
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, TypeVar, Union

from . import _program, errors
from ._program import Place
from .lock import Lock

T = TypeVar("T")
R = TypeVar("R")

PROTOCOL = 5
"""The version of all pickles. Every supported Python reads and writes it."""

WORK = "MULTILOCK_MAP"
"""The environment variable with the directory that this host's workers read their function and items from."""

SETTLED = 5.0
"""For how many seconds items without a started job are attributed to a host that is about to start its batch."""

GUARD = (
    "multilock.map was called while a worker imported the script: "
    'put the call under if __name__ == "__main__":, so that importing the script does not run it'
)

importing = False
"""True in a worker while it imports the script."""


class RemoteTraceback(Exception):
    """The traceback of a worker, as the cause of the exception that it raised."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return "\n" + self.text


def map(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    group: str,
    workers: Optional[int] = None,
    retries: int = 0,
    options: Sequence[str] = (),
    dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    source: Optional[str] = None,
    trust: Optional[str] = None,
) -> Iterator[R]:
    """Call a function with each item, once across all hosts that run this with the same items and group.

    Each call runs in a process of its own, which imports the function by name. So the function must be at the
    top level of a module or of the script, and a script must call ``map`` under
    ``if __name__ == "__main__":``. The call returns when all items have ended, on any host. An item that has
    ended is not run again, even if it failed: use ``retries``, or ``options=["--retry-failed"]`` on one host.

    Items and values are pickles in the shared directory. A pickle can run any code, so files of other users
    are rejected unless ``trust`` names the user.

    Args:
        function: A function with one parameter.
        items: The items, which must be the same on all hosts, in the same order.
        group: The group of the jobs. Use another one for other items or another function.
        workers: How many items to process at a time on this host.
        retries: How many further attempts to make for an item that fails.
        options: Further options of ``multilock batch``, such as "--max-runtime=1h".
        dir, source, trust: The location of the locks, a directory; see ``help(multilock)``.

    Returns:
        An iterator of the values, in the order of the items. If an item failed, the iterator raises its
        exception in place of its value, and ends; ``results`` returns the values of all items.

    Raises:
        TypeError: The function cannot be imported by name, or an item cannot be pickled.
        RuntimeError: A worker cannot import the function on this host.
        Error: The group has other items or another function, or the batch cannot be run.
    """
    if importing:
        raise RuntimeError(GUARD)
    work = _Work.of(function)
    blobs = [dumps(item, f"item {number}") for number, item in enumerate(items, 1)]
    if not blobs:
        return iter(())
    place = Place(dir, group, source, trust)
    with tempfile.TemporaryDirectory(prefix="multilock-map-") as temporary:
        local = Path(temporary)
        work.write(local)
        work.check(local)
        store = _Store.publish(place, work.name, blobs)
        store.write(local)
        jobs = [f"{number}\0{work.command(number, store.digest)}\0" for number in range(1, len(blobs) + 1)]
        args = ["batch", "--json", "--quiet", *place.options()]
        args += [*_program.options(jobs=workers, retries=retries or None), *options, "--null", "-"]
        answer = _program.json_output(args, os.fsencode("".join(jobs)), work.variables(local, store.values))
    if answer["unfinished"] == 0:
        store.remove_temporary_files()
    return store.iterate(place, answer["failed"] + answer["unfinished"] > 0)


def results(
    group: str,
    *,
    dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    source: Optional[str] = None,
    trust: Optional[str] = None,
) -> Iterator[tuple[Any, Any]]:
    """Read the results of ``map``, also while it runs.

    Args:
        group: The group that was passed to ``map``.
        dir, source, trust: The location of the locks, a directory; see ``help(multilock)``.

    Yields:
        A pair for each item that has ended, in the order of the items: the item, and its value or exception.
        Exceptions are returned, not raised; their ``__cause__`` has the worker's traceback. The exception of
        an item whose process died is Failed.
    """
    place = Place(dir, group, source, trust)
    store, jobs = _Store.find(place), _Group.of(place)
    if store is None or not jobs.used:
        return
    for number, blob in enumerate(store.blobs, 1):
        outcome = store.outcome(place, number, jobs)
        if outcome is not None:
            yield pickle.loads(blob), outcome.result


def dumps(value: Any, what: str) -> bytes:
    """Pickle a value, which messages call ``what``."""
    try:
        return pickle.dumps(value, PROTOCOL)
    except Exception as error:
        raise TypeError(f"{what} cannot be pickled: {error}") from error


@dataclass(frozen=True)
class _Work:
    """The function, and how a worker imports it on this host."""

    name: str
    function: bytes
    preparation: dict[str, Any]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "_Work":
        if not callable(function):
            raise TypeError(f"{function!r} is not a function")
        name = getattr(function, "__qualname__", type(function).__qualname__)
        if "<lambda>" in name or "<locals>" in name:
            raise TypeError(
                f"map cannot run {name}, because a worker imports the function by name: "
                "define it at the top level of a module or a script"
            )
        preparation = spawn.get_preparation_data("multilock-map")
        preparation.pop("authkey", None)  # a secret of this process
        if not os.path.isfile(preparation.get("init_main_from_path", "")):
            preparation.pop("init_main_from_path", None)  # a script on the standard input has no file
        has_script = any(key.startswith("init_main") for key in preparation)
        if getattr(function, "__module__", None) == "__main__" and not has_script:
            raise TypeError(
                f"map cannot run {name}, because a worker cannot import it from an interactive session: "
                "define it in a module or a script"
            )
        return cls(name, dumps(function, f"the function {name}"), preparation)

    def command(self, number: int, digest: str) -> str:
        """Return the job of an item.

        It fails if there is no value, because a function may end its process with exit code 0. It contains no
        path, because hosts with other paths must have the same list.
        """
        worker = f'"$MULTILOCK_MAP_PYTHON" -m multilock._worker {number} {digest[:16]} {shlex.quote(self.name)}'
        return f'{worker} && test -e "$MULTILOCK_MAP_VALUES/{number}"'

    def write(self, local: Path) -> None:
        (local / "work").write_bytes(dumps((self.preparation, self.function), "the function"))

    def variables(self, local: Path, values: Optional[Path] = None) -> dict[str, str]:
        """Return the environment variables that a worker needs in addition to those of this process."""
        variables = {
            WORK: str(local),
            "MULTILOCK_MAP_PYTHON": sys.executable,
            "MULTILOCK_MAP_VALUES": os.fspath(values or ""),
        }
        parent = str(Path(__file__).parent.parent)
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        # An interpreter finds site-packages and dist-packages by itself.
        if parent not in paths and not parent.endswith("-packages"):
            variables["PYTHONPATH"] = os.pathsep.join([parent, *filter(None, paths)])
        return variables

    def check(self, local: Path) -> None:
        """Import the function in a worker, so that a host that cannot import it lets no item fail."""
        done = subprocess.run(
            [sys.executable, "-m", "multilock._worker"],
            env={**os.environ, **self.variables(local)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"a worker cannot import {self.name} on this host, so no item was run; "
                f"fix this error first:\n{_program.decode(done.stderr)}"
            )


@dataclass(frozen=True)
class _Store:
    """The items of a group, and their values, in the shared directory."""

    directory: Path
    digest: str
    name: str
    blobs: list[bytes]

    @property
    def values(self) -> Path:
        return self.directory / self.digest

    @classmethod
    def find(cls, place: Place) -> "Optional[_Store]":
        return cls._read(_directory(place), place.trust)

    @classmethod
    def _read(cls, directory: Path, trust: Optional[str]) -> "Optional[_Store]":
        data = read(directory / "items", trust)
        if data is None:
            return None
        name, blobs, _ = pickle.loads(data)
        return cls(directory, hashlib.sha256(data).hexdigest(), name, blobs)

    @classmethod
    def publish(cls, place: Place, name: str, blobs: list[bytes]) -> "_Store":
        """Write the items, or compare them with the stored ones.

        One host at a time does this. If no job of the stored items has started, they belong to a host that is
        about to start its batch or, after a while, to a group whose results were deleted. In the latter case
        the items are written again, with a new digest, and so with a new directory for values.
        """
        directory = _directory(place)
        with Lock("map", dir=place.dir, group=place.group, source=place.source, trust=place.trust):
            _mkdir(directory)
            items, store = directory / "items", cls._read(directory, place.trust)
            same = store is not None and store._has(name, blobs)
            if store is not None and not _Group.of(place).used:
                age = _age(items)
                if not same:
                    time.sleep(max(0.0, min(SETTLED - age, SETTLED)))
                if (not same or age >= SETTLED) and not _Group.of(place).used:
                    shutil.rmtree(store.values, ignore_errors=True)
                    store, same = None, False
            if store is None:
                write(items, dumps((name, blobs, uuid.uuid4().bytes), "the items"))
                store = cls._read(directory, place.trust)
            elif not same:
                raise errors.Error(
                    f"the group {place.group} has other items, or another function than {name}: use another group, "
                    f"or delete the results of this one: {place.shell_command('clean', '--results')}"
                )
            assert store is not None
            _mkdir(store.values)
            return store

    def _has(self, name: str, blobs: list[bytes]) -> bool:
        if self.name != name or len(self.blobs) != len(blobs):
            return False
        return all(builtins.map(_equal, self.blobs, blobs))

    def write(self, local: Path) -> None:
        """Copy the items to local files, with an index, so that a worker reads only its own item."""
        with open(local / "items", "wb") as items, open(local / "index", "wb") as index:
            for blob in self.blobs:
                index.write(struct.pack("<qq", items.tell(), len(blob)))
                items.write(blob)

    def remove_temporary_files(self) -> None:
        """Remove the files of killed workers. Call it only when all items have ended."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self.values):
                if name.startswith("."):
                    (self.values / name).unlink()

    def iterate(self, place: Place, failed: bool) -> Iterator[Any]:
        """Yield the values, or raise the exception of the first item that failed.

        Args:
            place: The location of the group.
            failed: Whether any item has failed or not ended.
        """
        group = _Group.of(place) if failed else _Group(True, {})
        for number in range(1, len(self.blobs) + 1):
            outcome = self.outcome(place, number, group, retry=not failed)
            if outcome is None:
                raise errors.Failed(
                    f"item {number} has no value, because it has not ended or its file was removed; "
                    f"its state: {place.shell_command('status', str(number))}",
                    1,
                    None,
                )
            if isinstance(outcome, _Raised):
                raise outcome.result from outcome.result.__cause__
            yield outcome.result

    def outcome(
        self, place: Place, number: int, group: "_Group", retry: bool = False
    ) -> "Union[_Returned, _Raised, None]":
        """Return how an item ended, or None if it has not.

        Args:
            place: The location of the group.
            number: The item's number.
            group: The states of all jobs that have not succeeded.
            retry: Whether to wait for the file of the value, which an NFS client may not see yet.
        """
        state = group.states.get(str(number), {})
        data = read(self.values / str(number), place.trust)
        for delay in (0.1, 0.5, 1.0, 3.0) if retry else ():
            if data is None:
                time.sleep(delay)
                os.listdir(self.values)
                data = read(self.values / str(number), place.trust)
        succeeded, value, trace = (None, None, "") if data is None else pickle.loads(data)
        if state.get("state", "done") == "done":
            return _Returned(pickle.loads(value)) if succeeded else None
        if state["state"] != "failed":
            return None  # it will be retried
        if succeeded is False:
            return _Raised(_exception(value, trace))
        why = f" ({state['why']})" if state.get("why") else ""
        message = (
            f"item {number}: its process ended with code {state.get('exit')} on {state.get('host')}{why}; "
            f"its output: {place.shell_command('logs', str(number))}"
        )
        return _Raised(errors.Failed(message, 1, None))


@dataclass(frozen=True)
class _Returned:
    result: Any


@dataclass(frozen=True)
class _Raised:
    result: BaseException


@dataclass(frozen=True)
class _Group:
    """The states of the group's jobs."""

    used: bool  # whether the group has a list of jobs, or results
    states: dict[str, Any]  # by name; jobs that succeeded may be missing

    @classmethod
    def of(cls, place: Place) -> "_Group":
        found = _status(place).get("results") or {}
        states = {job["name"]: job for job in found.get("jobs") or []}
        return cls(bool(found.get("progress") or found.get("done") or states), states)


def _equal(one: bytes, other: bytes) -> bool:
    """Compare two pickles, or if they differ the objects."""
    try:
        return one == other or bool(pickle.loads(one) == pickle.loads(other))
    except Exception:  # for example, an array has no truth value
        return False


def _exception(data: Optional[bytes], trace: str) -> BaseException:
    """Load an exception. If this host cannot load its class, return Failed instead."""
    exception: BaseException = errors.Failed("an item raised " + trace.strip().rpartition("\n")[2], 1, None)
    if data is not None:
        with contextlib.suppress(Exception):
            exception = pickle.loads(data)
    exception.__cause__ = RemoteTraceback(trace)
    return exception


def _directory(place: Place) -> Path:
    """Return the directory of the group's items."""
    if not place.group:
        raise ValueError("map needs a group, whose jobs are the items: pass group=")
    base, group = builtins.map(str, (_status(place)[key] for key in ("base", "group")))
    if not os.path.isdir(base):
        raise errors.Error(
            f"map stores items and values in a shared directory, and {base} is not one: pass the directory as dir="
        )
    return Path(os.path.abspath(base), ".multilock", "groups", group, "map")


def _status(place: Place) -> dict[str, Any]:
    args = ["status", "--json", "--quiet", *place.options()]
    status = _program.parse_object(_program.check_output(args, expected=(0, 121, 123)))
    if not status:
        raise errors.Error(f"the status of the group cannot be read; see: {place.shell_command('status')}")
    return status


def _age(path: Path) -> float:
    """Return the age of a file by the clock of the file server. A missing file counts as old."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".clock-") as clock:
        with contextlib.suppress(FileNotFoundError):
            return os.fstat(clock.fileno()).st_mtime - path.stat().st_mtime
    return SETTLED


def read(path: Path, trust: Optional[str] = None) -> Optional[bytes]:
    """Read a file that only trusted users can have written. Return None if it does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
            raise errors.Error(
                f"{path} was not written by multilock.map, because it is not a regular file with one link: remove it"
            )
        trust = trust or os.environ.get("MULTILOCK_TRUST") or ""
        owner = _untrusted(info.st_uid, trust)
        if info.st_mode & 0o022 and "any" not in trust.split(","):
            raise errors.Error(
                f"other users may write to {path}, and its pickle can run any code: "
                'check who changed it, and then remove it, or trust all users with trust="any"'
            )
        if owner:
            raise errors.Error(
                f"{path} belongs to user {owner}, and its pickle can run any code: "
                f'if you trust this user, pass trust="{owner}"'
            )
        return file.read()


def _untrusted(uid: int, trust: str) -> str:
    """Return the name of a user that is not trusted, or "" for a trusted one."""
    import pwd  # missing on Windows, where locks do not live in directories

    name = str(uid)
    with contextlib.suppress(KeyError):
        name = pwd.getpwuid(uid).pw_name
    trusted = {user.strip() for user in trust.split(",")}
    return "" if uid in (0, os.geteuid()) or trusted & {"any", name, str(uid)} else name


def _mkdir(path: Path) -> None:
    """Make a directory with the permissions of its parent, whatever the umask is."""
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(stat.S_IMODE(path.parent.stat().st_mode))


def write(path: Path, data: bytes) -> None:
    """Write a file atomically. Users that may read its directory may read it."""
    temporary = path.with_name(f".{uuid.uuid4()}")
    try:
        with open(temporary, "xb") as file:
            # Only the owner may write, because read() rejects other files.
            os.fchmod(file.fileno(), 0o600 | path.parent.stat().st_mode & 0o044)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
