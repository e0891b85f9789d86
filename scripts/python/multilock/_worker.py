"""Calls the function of ``multilock.map`` with one item: python -m multilock._worker NUMBER ...

Without a number it only imports the function.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import traceback
from multiprocessing import spawn
from pathlib import Path
from typing import Any, Callable, Optional

from multilock import mapping


def load_function(local: Path) -> Callable[[Any], Any]:
    """Import the function as multiprocessing does: the script runs under the name __mp_main__."""
    preparation, name = pickle.loads((local / "work").read_bytes())
    mapping.importing = True
    try:
        spawn.prepare(preparation)
        function: Callable[[Any], Any] = pickle.loads(name)
    finally:
        mapping.importing = False
    return function


def load_item(local: Path, number: int) -> Any:
    with open(local / "index", "rb") as index, open(local / "items", "rb") as items:
        index.seek((number - 1) * struct.calcsize("<qq"))
        offset, size = struct.unpack("<qq", index.read(struct.calcsize("<qq")))
        items.seek(offset)
        return pickle.loads(items.read(size))


def main() -> int:
    local, numbers = Path(os.environ[mapping.WORK]), sys.argv[1:2]  # importing the script replaces sys.argv
    function = load_function(local)
    if not numbers:
        return 0
    number = int(numbers[0])
    values = Path(os.environ["MULTILOCK_MAP_VALUES"])
    value: Optional[bytes]
    try:
        value, trace = mapping.dumps(function(load_item(local, number)), "the value"), ""
    except KeyboardInterrupt:
        raise  # the batch is ending the job, which then has no result
    except BaseException as error:
        trace = traceback.format_exc()
        try:
            value = pickle.dumps(error, mapping.PROTOCOL)
            pickle.loads(value)
        except Exception:
            value = None
    mapping.write(values / str(number), pickle.dumps((not trace, value, trace), mapping.PROTOCOL))
    sys.stderr.write(trace)
    return 1 if trace else 0


if __name__ == "__main__":
    sys.exit(main())
