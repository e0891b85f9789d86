"""A function over a list of items, each once over all hosts: the jobs of a batch, whose values are kept.

Beside the captured output of the group's jobs is a directory ``map``:

    items           the items, as the first host wrote them: a pickle
    DIGEST/NUMBER   how item NUMBER ended: a pickle; DIGEST is that of ``items``

Each file is renamed into place as a whole.
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
from ._program import Place, call
from .jobs import answer
from .lock import Lock

T = TypeVar("T")
R = TypeVar("R")

PROTOCOL = 5
"""Of all pickles. Every Python that this package runs on reads and writes it."""

WORK = "MULTILOCK_MAP"
"""The variable that names the directory with what the workers of this host need."""

SETTLED = 5.0
"""For how many seconds items belong to a host that has not yet begun a batch with them."""

GUARD = 'the script runs multilock.map when it is imported: put the call under if __name__ == "__main__":'

importing = False
"""Set in a worker while it imports the script."""


class RemoteTraceback(Exception):
    """The cause of an item's exception: where it was raised, in another process."""

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
    """Calls the function with each item, once over all hosts that run this with the same items and group.

    Each call has a process of its own, in which the function is imported: it is one of a module, or of the
    script, whose own call of ``map`` is under ``if __name__ == "__main__":``. Returns when each item has ended, on
    whatever host. The iterator has the values in the order of the items, and raises the exception of
    an item at its place; ``results`` has all of them. What ended is not run again, also if it failed: ``retries``
    is for that, or ``options=["--retry-failed"]``. ``workers`` and ``options`` are those of ``batch``.

    Items and values are pickles in the shared directory. A pickle can run any code, so a file of another
    user is refused unless ``trust`` names the user (or is "any").
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
        kept = _Kept.publish(place, work.name, blobs)
        kept.write(local)
        jobs = [f"{number}\0{work.command(number, kept.digest)}\0" for number in range(1, len(blobs) + 1)]
        words = ["batch", "--json", "--quiet", *place.options(), *_program.options(jobs=workers, retries=retries or None)]
        said = answer([*words, *options, "--null", "-"], os.fsencode("".join(jobs)), work.variables(local, kept.values))
    if said["unfinished"] == 0:
        kept.tidy()
    return kept.ended(place, said["failed"] + said["unfinished"] > 0)


def results(
    group: str,
    *,
    dir: Optional[Union[str, "os.PathLike[str]"]] = None,
    source: Optional[str] = None,
    trust: Optional[str] = None,
) -> Iterator[tuple[Any, Any]]:
    """Pairs of each item of ``map`` that has ended, in their order, and its value or its exception.

    An exception is returned and not raised; its ``__cause__`` has the traceback. Failed is that of an item
    whose process died.
    """
    place = Place(dir, group, source, trust)
    kept, jobs = _Kept.find(place), _Group.of(place)
    if kept is None or not jobs.used:
        return
    for number, blob in enumerate(kept.blobs, 1):
        outcome = kept.outcome(place, number, jobs)
        if outcome is not None:
            yield pickle.loads(blob), outcome.result


def dumps(value: Any, what: str) -> bytes:
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
            raise TypeError(f"map cannot run {name}: a worker imports the function by its name, so define it at the top level of a module or script, not as a lambda or inside of a function")
        preparation = spawn.get_preparation_data("multilock-map")
        preparation.pop("authkey", None)  # is a secret of this process
        if not os.path.isfile(preparation.get("init_main_from_path", "")):
            preparation.pop("init_main_from_path", None)  # a script from the standard input has none
        if getattr(function, "__module__", None) == "__main__" and not any(key.startswith("init_main") for key in preparation):
            raise TypeError(f"map cannot run {name}: it was defined in an interactive session, which a worker cannot import; put it into a module or a script")
        return cls(name, dumps(function, f"the function {name}"), preparation)

    def command(self, number: int, digest: str) -> str:
        """Succeeds only if there is a value: a function may end its process with code 0.

        The list of jobs is the same on hosts with other paths.
        """
        worker = f'"$MULTILOCK_MAP_PYTHON" -m multilock._worker {number} {digest[:16]} {shlex.quote(self.name)}'
        return f'{worker} && test -e "$MULTILOCK_MAP_VALUES/{number}"'

    def write(self, local: Path) -> None:
        (local / "work").write_bytes(dumps((self.preparation, self.function), "the function"))

    def variables(self, local: Path, values: Optional[Path] = None) -> dict[str, str]:
        """What the environment of a worker has beside ours."""
        more = {WORK: str(local), "MULTILOCK_MAP_PYTHON": sys.executable, "MULTILOCK_MAP_VALUES": os.fspath(values or "")}
        parent = str(Path(__file__).parent.parent)
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        if parent not in paths and not parent.endswith("-packages"):  # a fresh interpreter finds those
            more["PYTHONPATH"] = os.pathsep.join([parent, *filter(None, paths)])
        return more

    def check(self, local: Path) -> None:
        """Imports the function in a process of its own, before any item can fail because that does not work here."""
        words = [sys.executable, "-m", "multilock._worker"]
        check = subprocess.run(words, env={**os.environ, **self.variables(local)}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if check.returncode != 0:
            raise RuntimeError(f"a worker cannot import {self.name} on this host:\n{_program.text(check.stderr)}")


@dataclass(frozen=True)
class _Kept:
    """The items of a group, and their values."""

    directory: Path
    digest: str
    name: str
    blobs: list[bytes]

    @property
    def values(self) -> Path:
        return self.directory / self.digest

    @classmethod
    def find(cls, place: Place) -> "Optional[_Kept]":
        return cls._read(_directory(place), place.trust)

    @classmethod
    def _read(cls, directory: Path, trust: Optional[str]) -> "Optional[_Kept]":
        data = read(directory / "items", trust)
        if data is None:
            return None
        name, blobs, _ = pickle.loads(data)
        return cls(directory, hashlib.sha256(data).hexdigest(), name, blobs)

    @classmethod
    def publish(cls, place: Place, name: str, blobs: list[bytes]) -> "_Kept":
        """Writes the items, or compares them with those that another host wrote, or an earlier call.

        Hosts take turns. Items of which nothing has begun are those of a host that is about to begin, or, after a
        while, of a group whose results were forgotten: they get a new directory for values then.
        """
        directory = _directory(place)
        with Lock("map", dir=place.dir, group=place.group, source=place.source, trust=place.trust):
            _mkdir(directory)
            items, kept = directory / "items", cls._read(directory, place.trust)
            same = kept is not None and kept.name == name and len(kept.blobs) == len(blobs) and all(builtins.map(_same, kept.blobs, blobs))
            if kept is not None and not _Group.of(place).used:
                age = _age(items)
                if not same:
                    time.sleep(max(0.0, min(SETTLED - age, SETTLED)))
                if (not same or age >= SETTLED) and not _Group.of(place).used:
                    shutil.rmtree(kept.values, ignore_errors=True)
                    kept, same = None, False
            if kept is None:
                write(items, dumps((name, blobs, uuid.uuid4().bytes), "the items"))
                kept = cls._read(directory, place.trust)
            elif not same:
                raise errors.Error(f"the group {place.group} has other items, or another function than {name}: choose another group, or forget its results first: {place.shown('clean', '--results')}")
            assert kept is not None
            _mkdir(kept.values)
            return kept

    def write(self, local: Path) -> None:
        """Writes the items to where a worker finds its own at once."""
        with open(local / "items", "wb") as items, open(local / "index", "wb") as index:
            for blob in self.blobs:
                index.write(struct.pack("<qq", items.tell(), len(blob)))
                items.write(blob)

    def tidy(self) -> None:
        """Removes what killed workers left, when none is at work any more."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self.values):
                if name.startswith("."):
                    (self.values / name).unlink()

    def ended(self, place: Place, failed: bool) -> Iterator[Any]:
        """The values of items that have all ended, unless some have failed."""
        group = _Group.of(place) if failed else _Group(True, {})
        for number in range(1, len(self.blobs) + 1):
            outcome = self.outcome(place, number, group, patient=not failed)
            if outcome is None:
                raise errors.Failed(f"item {number} has no value: it has not ended, or its file was removed", 1, None)
            if isinstance(outcome, _Raised):
                raise outcome.result from outcome.result.__cause__
            yield outcome.result

    def outcome(self, place: Place, number: int, group: "_Group", patient: bool = False) -> "Union[_Returned, _Raised, None]":
        """How an item ended, None if it has not, as far as is known. The group lists what did not succeed."""
        state = group.states.get(str(number), {})
        data = read(self.values / str(number), place.trust)
        for delay in (0.1, 0.5, 1.0, 3.0) if patient else ():  # an NFS client may not know the file yet
            if data is None:
                time.sleep(delay)
                os.listdir(self.values)
                data = read(self.values / str(number), place.trust)
        good, value, trace = (None, None, "") if data is None else pickle.loads(data)
        if state.get("state", "done") == "done":
            return _Returned(pickle.loads(value)) if good else None
        if state["state"] != "failed":
            return None  # it will run again
        if good is False:
            return _Raised(_exception(value, trace))
        why = f" ({state['why']})" if state.get("why") else ""
        return _Raised(errors.Failed(f"item {number}: its process ended with code {state.get('exit')} on {state.get('host')}{why}; what it printed: {place.shown('logs', str(number))}", 1, None))


@dataclass(frozen=True)
class _Returned:
    result: Any


@dataclass(frozen=True)
class _Raised:
    result: BaseException


@dataclass(frozen=True)
class _Group:
    """What is known of the group's jobs."""

    used: bool  # it has a list of jobs, or results
    states: dict[str, Any]  # the results of jobs, by name; of those that succeeded not all

    @classmethod
    def of(cls, place: Place) -> "_Group":
        found = _status(place).get("results") or {}
        states = {one["name"]: one for one in found.get("jobs") or []}
        return cls(bool(found.get("progress") or found.get("done") or states), states)


def _same(one: bytes, other: bytes) -> bool:
    try:
        return one == other or bool(pickle.loads(one) == pickle.loads(other))
    except Exception:  # as the truth of arrays
        return False


def _exception(data: Optional[bytes], trace: str) -> BaseException:
    exception: BaseException = errors.Failed("an item raised " + trace.strip().rpartition("\n")[2], 1, None)
    if data is not None:
        with contextlib.suppress(Exception):  # its class may be unknown here
            exception = pickle.loads(data)
    exception.__cause__ = RemoteTraceback(trace)
    return exception


def _directory(place: Place) -> Path:
    """Where the group's items are."""
    if not place.group:
        raise ValueError("name a group: its jobs are the items")
    base, group = builtins.map(str, (_status(place)[key] for key in ("base", "group")))
    if not os.path.isdir(base):
        raise errors.Error("map keeps items and values in a shared directory, and there is none: " + base)
    return Path(os.path.abspath(base), ".multilock", "groups", group, "map")


def _status(place: Place, *more: str) -> dict[str, Any]:
    found = errors.parsed(call(["status", "--json", "--quiet", *place.options(), *more], fine=(0, 121, 123)))
    if not found:
        raise errors.Error("the status of the group cannot be read")
    return found


def _age(path: Path) -> float:
    """The age of a file by the server's clock; that of one that is gone does not matter."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".clock-") as clock, contextlib.suppress(FileNotFoundError):
        return os.fstat(clock.fileno()).st_mtime - path.stat().st_mtime
    return SETTLED


def read(path: Path, trust: Optional[str] = None) -> Optional[bytes]:
    """Reads a file that only trusted users can have written, None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
            raise errors.Error(f"{path} is not what multilock.map writes")
        trust = trust or os.environ.get("MULTILOCK_TRUST") or ""
        owner = _owner(info.st_uid, trust)
        if info.st_mode & 0o022 and "any" not in trust.split(","):
            raise errors.Error(f"others may write to {path}, and a pickle can run any code: it is not one that multilock.map wrote")
        if owner:
            raise errors.Error(f"{path} belongs to user {owner}, and a pickle can run any code: if you trust that user, name it with trust=")
        return file.read()


def _owner(uid: int, trust: str) -> str:
    """The name of a user that is not trusted, "" of one that is."""
    import pwd  # there is none on Windows, where no locks live in a directory

    name = str(uid)
    with contextlib.suppress(KeyError):
        name = pwd.getpwuid(uid).pw_name
    trusted = {one.strip() for one in trust.split(",")}
    return "" if uid in (0, os.geteuid()) or trusted & {"any", name, str(uid)} else name


def _mkdir(path: Path) -> None:
    """Makes a directory for those who may use the one that it is in, whatever the umask."""
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(stat.S_IMODE(path.parent.stat().st_mode))


def write(path: Path, data: bytes) -> None:
    """Writes a file that is there as a whole, or not at all. Users of its directory may read it."""
    temporary = path.with_name(f".{uuid.uuid4()}")
    try:
        with open(temporary, "xb") as file:
            os.fchmod(file.fileno(), 0o600 | path.parent.stat().st_mode & 0o044)  # only the owner writes: readers trust it
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
