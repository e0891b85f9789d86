"""The Python locks, with release() and an acquire() that waits. A library is imported when it is measured."""

import os


def flufl(directory):
    import flufl.lock

    # Its waits are random, up to 2 s, and not configurable.
    lock = flufl.lock.Lock(os.path.join(directory, "lock"))
    lock.acquire, lock.release = lock.lock, lock.unlock
    return lock


def filelock(directory):
    import filelock

    return filelock.FileLock(os.path.join(directory, "lock"))


def filelock_soft(directory):
    import filelock

    return filelock.SoftFileLock(os.path.join(directory, "lock"))


def multilock_python(directory):
    from multilock_python import MultiLock

    return MultiLock(directory)


LOCKS = {
    "flufl": flufl,
    "filelock": filelock,
    "filelock-soft": filelock_soft,
    "multilock-python": multilock_python,
}
