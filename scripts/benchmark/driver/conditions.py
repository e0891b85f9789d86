"""The conditions of a run, which are needed to interpret its numbers."""

import os
import platform
import subprocess


def filesystem(directory):
    listed = subprocess.run(["df", "--output=fstype", directory], capture_output=True, text=True, check=True)
    return listed.stdout.split()[-1]


def conditions(places):
    """Describe the machine in one line."""
    load = os.getloadavg()[0]
    filesystems = ", ".join(places.named())
    return f"conditions: kernel {platform.release()}, {os.cpu_count()} cores, load {load:.1f}, {filesystems}"


def versions(peers):
    """List the versions of the peers in one line. Peers with the same version share an entry."""
    known = {}
    for peer in peers:
        known.setdefault(peer.needs.version(), {})[peer.name] = True
    return "versions: " + ", ".join(f"{'/'.join(names)} {version}" for version, names in known.items() if version)
