"""The measure of idle waiters: all of them wait at once, since what they should be doing is nothing."""

import time
from contextlib import ExitStack, contextmanager

from .commands import waiting as waiting_command
from .measures import start
from .process import Failed

# Waiters start up, look often at first, and settle: what is measured is the long wait.
SETTLE_SECONDS = 2


@contextmanager
def waiting_library(library, directory):
    with ExitStack() as stack:
        holder, waiter = start(stack, library, directory), start(stack, library, directory)
        holder.ask("acquire")
        waiter.tell("acquire")
        yield waiter.processor_seconds


def idle(libraries, commands, scratch, effort):
    """The percentage of one processor that each waiter used, and why some could not be measured."""
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
        before, began = read(clocks, failures), time.monotonic()
        time.sleep(effort.idle_seconds)
        after, elapsed = read(clocks, failures), time.monotonic() - began
        return {title: 100 * (after[title] - before[title]) / elapsed for title in after}, failures


def read(clocks, failures):
    """The processor time of every waiter. One that does not wait any more becomes a failure."""
    readings = {}
    for title, clock in clocks.items():
        try:
            readings[title] = clock()
        except Failed as failure:
            failures[title] = str(failure)
    return readings
