"""Everything is in pyproject.toml; this is for tools that ask for a setup.py."""

from setuptools import setup

setup()
