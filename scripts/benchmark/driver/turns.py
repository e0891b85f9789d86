"""Rounds in which the peers run in turns, and their samples."""

import statistics
import sys

from .catalogue import OURS
from .process import Failed


class Samples:
    """The samples of each peer and round. A peer that failed has no samples, but a reason."""

    def __init__(self):
        self.rounds = {}
        self.failures = {}

    def of(self, peer, metric):
        return [sample[metric] for sample in self.rounds[peer]]

    def median(self, peer, metric):
        return statistics.median(self.of(peer, metric))

    def ratio(self, peer, metric):
        """Return the median of the ratios to multilock in the same round, or None without multilock."""
        if OURS not in self.rounds:
            return None
        pairs = zip(self.of(peer, metric), self.of(OURS, metric))
        ratios = [theirs / ours for theirs, ours in pairs if ours]
        return statistics.median(ratios) if ratios else None


def take_turns(title, peers, rounds, measure):
    """Measure each peer once in each round."""
    samples = Samples()
    for number in range(1, rounds + 1):
        for peer in peers:
            if peer.name in samples.failures:
                continue
            progress(f"{title}: round {number} of {rounds}: {peer.name}")
            try:
                samples.rounds.setdefault(peer.name, []).append(measure(peer))
            except Failed as failure:
                samples.failures[peer.name] = str(failure)
                samples.rounds.pop(peer.name, None)
    progress("")
    return samples


def progress(text):
    """Show the current step, but only on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
