"""A peer that speaks the on-disk protocol of the Python MultiLock.

Commands come in as lines, one answer goes out for each:

    acquire NAME      make GROUP/NAME, fill NAME.lock, rename it to NAME.locked,
                      read it back: "acquired" or "denied"
    mkdir NAME        acquire in single steps: make the directory ...
    fill NAME         ... create, write and sync NAME.lock ...
    rename NAME       ... and rename it and read it back, answering like acquire
    verify NAME       "mine", or "not mine"
    release NAME      "released", or "not mine"
    wait NAME         one round of the barrier: "passed", or "held"
    me NAME           its hostname and pid, as it writes them
    count NAME FILE N N times: acquire (again until it works), add one to the
                      number in FILE, release
"""
import os
import random
import shutil
import socket
import sys
import time

GROUP = sys.argv[1]
ME = "%s %d" % (socket.gethostname(), os.getpid())


def path(name, suffix=""):
    return os.path.join(GROUP, name, name + suffix) if suffix else os.path.join(GROUP, name)


def mkdir(name):
    os.makedirs(GROUP, exist_ok=True)
    os.mkdir(path(name))


def fill(name):
    fd = os.open(path(name, ".lock"), os.O_CREAT | os.O_EXCL | os.O_RDWR)
    try:
        os.write(fd, ME.encode())
        os.fsync(fd)
    finally:
        os.close(fd)


def rename(name):
    os.rename(path(name, ".lock"), path(name, ".locked"))
    return verify(name)


def verify(name):
    try:
        with open(path(name, ".locked")) as f:
            host, pid = f.read(1024).strip().split()
    except (OSError, ValueError):
        return False
    return "%s %s" % (host, pid) == ME


def acquire(name):
    if verify(name):
        return True
    try:
        mkdir(name)
        fill(name)
        return rename(name)
    except OSError:
        return False


def release(name):
    if not verify(name):
        return False
    shutil.rmtree(path(name))
    try:
        os.rmdir(GROUP)
    except OSError:
        pass  # others hold locks in it
    return True


def count(name, counter, rounds):
    for _ in range(rounds):
        while not acquire(name):
            time.sleep(random.uniform(0, 0.01))
        with open(counter) as f:
            number = int(f.read())
        with open(counter, "w") as f:
            f.write(str(number + 1))
        if not release(name):
            return False
    return True


def wait():
    try:
        if os.path.isdir(GROUP):
            os.rmdir(GROUP)
        return True
    except OSError:
        return False


def obey(command, name, rest):
    if command == "acquire":
        return "acquired" if acquire(name) else "denied"
    if command == "verify":
        return "mine" if verify(name) else "not mine"
    if command == "release":
        return "released" if release(name) else "not mine"
    if command == "wait":
        return "passed" if wait() else "held"
    if command == "me":
        return ME
    if command == "count":
        return "counted" if count(name, rest[0], int(rest[1])) else "robbed"
    try:
        done = {"mkdir": mkdir, "fill": fill, "rename": rename}[command](name)
    except OSError as error:
        return "denied: %s" % error.strerror
    return "denied" if done is False else "acquired" if done else "done"


for line in sys.stdin:
    command, name, *rest = line.split()
    print(obey(command, name, rest), flush=True)
