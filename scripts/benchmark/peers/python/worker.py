"""Runs a Python lock for the driver, with the commands in ../../README.md.

    worker.py LOCK DIR
"""

import json
import sys
import time

import locks


class Worker:
    def __init__(self, lock):
        self.lock = lock

    def acquire(self):
        self.lock.acquire()
        return {"at": time.monotonic_ns()}

    def release(self):
        before = time.monotonic_ns()
        self.lock.release()
        return {"at": before}

    def cycles(self, seconds):
        start, cycles = time.monotonic(), 0
        while time.monotonic() - start < float(seconds):
            self.lock.acquire()
            self.lock.release()
            cycles += 1
        return {"cycles": cycles, "seconds": time.monotonic() - start}

    def count(self, times, path):
        longest = 0
        for _ in range(int(times)):
            start = time.monotonic()
            self.lock.acquire()
            longest = max(longest, time.monotonic() - start)
            increment(path)
            self.lock.release()
        return {"at": time.monotonic_ns(), "longest": longest}


def increment(path):
    with open(path) as counter:
        number = int(counter.read())
    with open(path, "w") as counter:
        counter.write(str(number + 1))


def reply(answer):
    print(json.dumps(answer), flush=True)


def main(name, directory):
    worker = Worker(locks.LOCKS[name](directory))
    commands = {
        "acquire": worker.acquire,
        "release": worker.release,
        "cycles": worker.cycles,
        "count": worker.count,
    }
    reply({})
    for line in sys.stdin:
        verb, *arguments = line.rstrip("\n").split(" ", 2)
        reply(commands[verb](*arguments))


main(*sys.argv[1:])
