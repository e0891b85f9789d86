"""The conditions of a run, without which its numbers mean nothing."""

import os
import platform
import subprocess


def filesystem(directory):
    listed = subprocess.run(["df", "--output=fstype", directory], capture_output=True, text=True, check=True)
    return listed.stdout.split()[-1]


def conditions(places):
    """One line about the machine."""
    load = os.getloadavg()[0]
    filesystems = ", ".join(places.named())
    return f"conditions: kernel {platform.release()}, {os.cpu_count()} cores, load {load:.1f}, {filesystems}"


def versions(peers):
    """One line about the peers: the names that share a version together, each name once."""
    known = {}
    for peer in peers:
        known.setdefault(peer.needs.version(), {})[peer.name] = True
    return "versions: " + ", ".join(f"{'/'.join(names)} {version}" for version, names in known.items() if version)
