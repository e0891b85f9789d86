"""The algorithm of the Python MultiLock, the predecessor of multilock, without its removal of dead locks.

The lock is a directory, created with mkdir. A file in it is created with O_EXCL, gets "HOSTNAME PID", is synced, is
renamed to its final name, and is read back. A release removes the directory, and that of the group if it is empty.
"""

import os
import shutil
import socket
import time

# The original cannot wait. This is the polling interval of filelock.
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
            # The lock is held, or a release has removed the group.
            return False
        return self.is_mine()

    def make_group(self):
        try:
            os.makedirs(self.group)
        except FileExistsError:
            # makedirs(exist_ok=True) would check it again, and fail if a release has removed it meanwhile.
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
