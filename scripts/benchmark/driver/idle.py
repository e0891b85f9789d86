"""Measures idle waiters, all at the same time, because they should use no processor time."""

import time
from contextlib import ExitStack, contextmanager

from .commands import waiting as waiting_command
from .measures import start
from .process import Failed

# Waiters start up and poll often at first; only the long wait after that is measured.
SETTLE_SECONDS = 2


@contextmanager
def waiting_library(library, directory):
    with ExitStack() as stack:
        holder, waiter = start(stack, library, directory), start(stack, library, directory)
        holder.ask("acquire")
        waiter.send("acquire")
        yield waiter.processor_seconds


def idle(libraries, commands, scratch, effort):
    """Return the percentage of one processor that each waiter used, and the failures by peer."""
    clocks, failures = {}, {}
    with ExitStack() as stack:
        for peer, waiting in [
            *((library, waiting_library) for library in libraries),
            *((command, waiting_command) for command in commands),
        ]:
            title = peer.name if waiting is waiting_library else f"{peer.name} (command)"
            try:
                clocks[title] = stack.enter_context(waiting(peer, scratch()))
            except Failed as failure:
                failures[title] = str(failure)
        time.sleep(SETTLE_SECONDS)
        before, start_time = read(clocks, failures), time.monotonic()
        time.sleep(effort.idle_seconds)
        after, elapsed = read(clocks, failures), time.monotonic() - start_time
        return {title: 100 * (after[title] - before[title]) / elapsed for title in after}, failures


def read(clocks, failures):
    """Return the processor time of each waiter. A waiter that has ended is added to the failures."""
    readings = {}
    for title, clock in clocks.items():
        try:
            readings[title] = clock()
        except Failed as failure:
            failures[title] = str(failure)
    return readings
