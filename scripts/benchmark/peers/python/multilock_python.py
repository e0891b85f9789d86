"""The algorithm of the Python MultiLock, which multilock descends from, without its clean-up of dead locks.

The lock is a directory, made by mkdir. In it a file is created with O_EXCL, gets "HOSTNAME PID", is flushed, is renamed
to its final name and read back. Releasing removes the directory, and the group's if nothing else is held.
"""

import os
import shutil
import socket
import time

# The original never waits for a lock. This is the interval at which filelock polls.
POLL_SECONDS = 0.05


class MultiLock:
    def __init__(self, base, group=".locks", name="lock"):
        self.group = os.path.join(base, group)
        self.directory = os.path.join(self.group, name)
        self.staged = os.path.join(self.directory, name + ".lock")
        self.published = os.path.join(self.directory, name + ".locked")
        self.record = f"{socket.gethostname()} {os.getpid()}".encode()

    def acquire(self):
        while not self.try_acquire():
            time.sleep(POLL_SECONDS)

    def try_acquire(self):
        if self.is_mine():
            return True
        self.make_group()
        try:
            os.mkdir(self.directory)
            self.write()
            os.rename(self.staged, self.published)
        except (FileExistsError, FileNotFoundError):
            # Held, or the group was removed by a release since it was made.
            return False
        return self.is_mine()

    def make_group(self):
        try:
            os.makedirs(self.group)
        except FileExistsError:
            # os.makedirs(exist_ok=True) would look again, and complain if a release has removed it by then.
            pass

    def write(self):
        staged = os.open(self.staged, os.O_CREAT | os.O_EXCL | os.O_RDWR)
        os.write(staged, self.record)
        os.fsync(staged)
        os.close(staged)

    def is_mine(self):
        try:
            published = os.open(self.published, os.O_RDWR)
        except FileNotFoundError:
            return False
        record = os.read(published, 1024)
        os.close(published)
        return record == self.record

    def release(self):
        if not self.is_mine():
            raise RuntimeError(f"{self.published} is not held by this process")
        shutil.rmtree(self.directory)
        try:
            os.rmdir(self.group)
        except OSError:
            # Another lock of the group is held, or another release removed the group first.
            pass
