"""The benchmark driver: installs the peers, runs them in turns, and prints the tables."""
