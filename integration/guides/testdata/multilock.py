"""The part of the class MultiLock of 2012 that the guides use, for Python 3."""

import os
import shutil
import socket
import time


class MultiLock:
    def __init__(self, lockname="lock", lockgroup=".locks", basepath="."):
        self.directory = os.path.join(os.path.realpath(basepath), lockgroup, lockname)
        self.lockfile = os.path.join(self.directory, lockname + ".lock")
        self.lockedfile = os.path.join(self.directory, lockname + ".locked")
        self.record = [socket.gethostname(), str(os.getpid())]

    def acquire(self, maxage=None):
        if maxage and os.path.exists(self.directory) and time.time() - os.stat(self.directory).st_mtime >= maxage:
            shutil.rmtree(self.directory)
        try:
            os.makedirs(os.path.dirname(self.directory), exist_ok=True)
            os.mkdir(self.directory)
            with open(self.lockfile, "x") as file:
                file.write(" ".join(self.record))
            os.rename(self.lockfile, self.lockedfile)
        except OSError:
            pass
        return self.verify()

    def verify(self):
        try:
            with open(self.lockedfile) as file:
                return int(file.read(1024).split() == self.record)
        except OSError:
            return 0

    def release(self):
        if self.verify():
            shutil.rmtree(self.directory)
