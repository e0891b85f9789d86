"""Measurements of libraries. Each returns a dictionary of numbers for one peer and one round."""

import random
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass

from .process import Worker

# Long enough for interpreters to fill their caches.
WARM_UP_SECONDS = 0.05

# How long the waiter waits before a release: random, so that no polling interval has an advantage.
HOLD_SECONDS = (0.01, 0.2)


@dataclass(frozen=True)
class Effort:
    """The extent of the measurements in a round."""

    cycles_seconds: float
    processes: int
    increments: int
    handover_seconds: float
    calls: int
    idle_seconds: float


FULL = Effort(cycles_seconds=1, processes=8, increments=200, handover_seconds=6, calls=50, idle_seconds=20)
QUICK = Effort(cycles_seconds=0.1, processes=4, increments=25, handover_seconds=1, calls=10, idle_seconds=3)


def start(stack, library, directory):
    worker = stack.enter_context(Worker(library, directory))
    worker.answer()
    return worker


def uncontended(library, directories, effort):
    """Return the cycles per second of one process, for each directory."""
    return {place: cycles_per_second(library, scratch(), effort) for place, scratch in directories.items()}


def cycles_per_second(library, directory, effort):
    with ExitStack() as stack:
        worker = start(stack, library, directory)
        worker.ask("cycles", WARM_UP_SECONDS)
        done = worker.ask("cycles", effort.cycles_seconds)
        return done["cycles"] / done["seconds"]


def contended(library, scratch, effort):
    """Let many processes increment a number. Return the time, fairness, processor time and lost increments."""
    directory = scratch()
    counter = f"{directory}/counter"
    write(counter, "0")
    with ExitStack() as stack:
        workers = [start(stack, library, directory) for _ in range(effort.processes)]
        used = sum(worker.processor_seconds() for worker in workers)
        start_time = time.monotonic_ns()
        for worker in workers:
            worker.send("count", effort.increments, counter)
        answers = [worker.answer() for worker in workers]
        used = sum(worker.processor_seconds() for worker in workers) - used
    finished = [(answer["at"] - start_time) / 1e9 for answer in answers]
    return {
        "total": max(finished),
        "first": min(finished),
        "middle": statistics.median(finished),
        "longest": max(answer["longest"] for answer in answers),
        "processor": used,
        "lost": effort.processes * effort.increments - int(read(counter)),
    }


def handover(library, scratch, effort):
    """Let two processes hand the lock to each other. Return the latencies in milliseconds."""
    directory, latencies = scratch(), []
    with ExitStack() as stack:
        holder, waiter = start(stack, library, directory), start(stack, library, directory)
        holder.ask("acquire")
        end = time.monotonic() + effort.handover_seconds
        while time.monotonic() < end or not latencies:
            waiter.send("acquire")
            time.sleep(random.uniform(*HOLD_SECONDS))
            released, acquired = holder.ask("release"), waiter.answer()
            latencies.append((acquired["at"] - released["at"]) / 1e6)
            holder, waiter = waiter, holder
        holder.ask("release")
    return {"latencies": latencies, "median": statistics.median(latencies)}


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def read(path):
    with open(path) as file:
        return file.read()
