"""The command line, and the sequence of measurements."""

import argparse
import os
import tempfile
from dataclasses import dataclass

from . import commands, idle, measures, tables
from .catalogue import COMMANDS, LIBRARIES, OURS
from .conditions import conditions, filesystem, versions
from .needs import Unavailable
from .turns import progress, take_turns

NAMES = list(dict.fromkeys(peer.name for peer in LIBRARIES + COMMANDS))


def main():
    options = parse()
    libraries = prepare([peer for peer in LIBRARIES if peer.name in options.only], options.install)
    runnable = prepare([peer for peer in COMMANDS if peer.name in options.only], options.install)
    with scratch("/dev/shm") as memory, scratch(options.disk) as disk:
        compare(libraries, runnable, Places(memory, disk), options)


def scratch(base):
    # On NFS the open files of a killed worker may remain for a moment (.nfs...), so that the directory cannot be removed.
    return tempfile.TemporaryDirectory(prefix="multilock-bench-", dir=base, ignore_cleanup_errors=True)


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Compares multilock with other locks, and reports ratios.",
    )
    parser.add_argument("--quick", action="store_true", help="a short run of less than a minute")
    parser.add_argument("--only", metavar="PEER,..", type=peers, default=NAMES, help=f"run only these peers, of: {', '.join(NAMES)}")
    parser.add_argument("--rounds", metavar="N", type=positive, help="number of rounds, in each of which all peers are measured (default: 5, or 2 with --quick)")
    parser.add_argument(
        "--disk",
        metavar="DIR",
        type=directory,
        default=os.environ.get("TMPDIR", "/var/tmp"),
        help="directory for all measurements except those on tmpfs (default: %(default)s)",
    )
    parser.add_argument(
        "--no-install", dest="install", action="store_false", help="skip peers that are not installed"
    )
    options = parser.parse_args()
    options.effort = measures.QUICK if options.quick else measures.FULL
    options.rounds = options.rounds or (2 if options.quick else 5)
    return options


def peers(text):
    """Parse the names of peers. multilock, with which the others are compared, is always included."""
    chosen = text.split(",")
    unknown = set(chosen) - set(NAMES)
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown peers {', '.join(sorted(unknown))}; known: {', '.join(NAMES)}")
    return [OURS, *chosen]


def directory(text):
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text} is not a directory")
    return text


def positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return int(text)


def prepare(wanted, download):
    """Return the peers that can run here, after installing them if necessary. Print the others."""
    ready = []
    for peer in wanted:
        progress(f"preparing {peer.name}")
        try:
            peer.needs.prepare(download)
            ready.append(peer)
        except Unavailable as reason:
            progress("")
            print(f"skipped: {peer.name} ({type(peer).__name__.lower()}): {reason}")
    progress("")
    return ready


@dataclass(frozen=True)
class Places:
    """The two directories of the measurements, on different filesystems."""

    memory: str
    disk: str

    def named(self):
        return {
            "tmpfs": lambda: fresh(self.memory),
            f"disk ({filesystem(self.disk)})": lambda: fresh(self.disk),
        }

    def scratch(self):
        return fresh(self.disk)


def fresh(parent):
    return tempfile.mkdtemp(dir=parent)


def compare(libraries, runnable, places, options):
    print(conditions(places))
    print(versions([*libraries, *runnable]), flush=True)
    compare_libraries(libraries, places, options)
    calls = take_turns(
        "commands", runnable, options.rounds, lambda peer: commands.call_time(peer, places.scratch, options.effort)
    )
    tables.calls(calls)
    progress("idle waiters")
    waiting = [command for command in runnable if command.waiting]
    percentages, failures = idle.idle(libraries, waiting, places.scratch, options.effort)
    progress("")
    tables.idle(percentages, failures, OURS, options.effort.idle_seconds)


def compare_libraries(libraries, places, options):
    effort, named = options.effort, places.named()
    alone = take_turns(
        "uncontended", libraries, options.rounds, lambda peer: measures.uncontended(peer, named, effort)
    )
    tables.uncontended(alone, list(named))
    for place, scratch in named.items():
        crowd = take_turns(
            f"contended on {place}",
            libraries,
            options.rounds,
            lambda peer, scratch=scratch: measures.contended(peer, scratch, effort),
        )
        tables.contended(crowd, effort, place)
    pairs = take_turns(
        "hand-over", libraries, options.rounds, lambda peer: measures.handover(peer, places.scratch, effort)
    )
    tables.handover(pairs, {library.name: library.waits for library in libraries})
