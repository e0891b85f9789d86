"""Two different names are two different locks, whatever bytes they contain."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import multilock

PIECES = [
    *(piece.encode() for piece in ("a", "B", "job", "-", ".", "%41", "\\", '"', "'", "$x", "#", ",", "{}", "é", "e\u0301", "\ufffd", "\U0010ffe9")),
    *(b"\xe9", b"\xe8", b"\xff", b"\x80", b"\xed\xb3\xa9", b"\xf4\x8f\xbf\xa9", b"\t", b"\n", b" "),
]


def pair(draw: random.Random) -> tuple[bytes, bytes]:
    """Return two different names that are similar."""
    while True:
        one = b"".join(draw.choices(PIECES, k=draw.randint(1, 5)))
        at = draw.randrange(len(one))
        other = draw.choice([one.upper(), one.strip(), one.decode("utf-8", "replace").encode(), one[:at] + one[at + 1 :], one[:at] + bytes([draw.randrange(1, 256)]) + one[at + 1 :]])
        if one != other and other and b"/" not in one + other:
            return one, other


def test_different_names_are_different_locks(shared: Path) -> None:
    """MULTILOCK_TEST_NAMES is the number of seconds for which random names are tried."""
    seed = time.time_ns()
    draw, end, count = random.Random(seed), time.monotonic() + float(os.environ.get("MULTILOCK_TEST_NAMES", "0").rstrip("s")), 0
    while count < 6 or time.monotonic() < end:
        count += 1
        one, other = map(os.fsdecode, pair(draw))
        case = f"seed {seed}: {one!r} and {other!r}"
        try:
            first = multilock.Lock(one, wait=0).acquire()
        except multilock.Held:
            raise AssertionError(case) from None
        except multilock.Error as error:
            assert len(str(error)) > 20, case  # rejected, with a reason
            continue
        try:
            try:
                multilock.Lock(other, wait=0).acquire().release()
            except multilock.Held:
                raise AssertionError(case) from None
            except multilock.Error as error:
                assert len(str(error)) > 20, case
            try:
                multilock.Lock(one, wait=0).acquire()
                raise AssertionError(f"{case}: twice")
            except multilock.Held:
                pass
        finally:
            first.release()
