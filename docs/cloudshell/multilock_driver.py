"""A lock in a CloudShell sandbox, for the driver of a shell. Python 3.6 or later.

    from multilock_driver import sandbox_lock

    def connect_ports(self, context, cancellation_context):
        with sandbox_lock(context, name="PORTS", wait="10m"):
            ...                     # nobody else is here

The binary "multilock" has to be on the execution server's PATH, or in MULTILOCK_BINARY. The
lock is held for this process and renewed by a keeper in the background. It is given back at
the end of the block; if the driver is killed, the keeper gives it back.
"""
import contextlib
import os
import subprocess
from urllib.parse import quote

HELD, LOST, UNSURE, TOO_LATE = 121, 122, 123, 124


class LockError(Exception):
    """The lock was not taken, or was lost; code is the exit code of multilock."""

    def __init__(self, code, text):
        super().__init__(text.strip() or "multilock exited with %d" % code)
        self.code = code


def source_of(context, **parameters):
    """The URL of the sandbox. It has no secret in it: the token goes by the environment."""
    there = context.connectivity
    reservation = context.reservation
    parameters.setdefault("domain", reservation.domain or "Global")
    parameters.setdefault("scheme", getattr(there, "cloudshell_api_scheme", None) or "http")
    query = "&".join("%s=%s" % (key, quote(value, safe="")) for key, value in sorted(parameters.items()))
    return "cloudshell://%s/%s?%s" % (there.server_address, quote(reservation.reservation_id, safe=""), query)


def _multilock(context, source, *arguments):
    environment = dict(os.environ, MULTILOCK_SOURCE=source, MULTILOCK_CLOUDSHELL_TOKEN=context.connectivity.admin_auth_token)
    done = subprocess.Popen([os.environ.get("MULTILOCK_BINARY", "multilock")] + list(arguments), env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    out, err = done.communicate()
    if done.returncode != 0:
        raise LockError(done.returncode, err)
    return out.strip()


@contextlib.contextmanager
def sandbox_lock(context, name="MUTEX", wait="10m", ttl="2m", **parameters):
    """Holds the lock during the block. Parameters are those of the URL: cafile="...", insecure="true"."""
    source = source_of(context, **parameters)
    token = _multilock(context, source, "acquire", "-n", name, "--wait", wait, "--ttl", ttl, "--pid", str(os.getpid()))
    try:
        yield token
    except BaseException:
        with contextlib.suppress(LockError):  # what went wrong in the block is the news
            _multilock(context, source, "release", "-n", name, "--token", token)
        raise
    _multilock(context, source, "release", "-n", name, "--token", token)
