"""For tools that need a setup.py; the settings are in pyproject.toml."""

from setuptools import setup

setup()
