"""The requirements of peers: whether they are installed, how to install them, and their versions."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parent.parent
REPOSITORY = BENCHMARK.parent.parent


def cache():
    """Return the directory for downloads and builds, which is outside the repository."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "multilock-bench"


class Unavailable(Exception):
    """A peer cannot be run here. The message is the reason."""


class Installed:
    """A requirement that is installed if it is missing. Subclasses implement present, install and version."""

    def prepare(self, download):
        if self.present():
            return
        if not download:
            raise Unavailable("not installed")
        self.install()


def run(command, **options):
    """Run a command and return its output. If it fails, raise Unavailable with the first line of its errors."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except OSError as error:
        raise Unavailable(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line and not line.startswith("#")]
        raise Unavailable(f"{' '.join(command[:2])}: {errors[0] if errors else done.returncode}")
    return done.stdout.strip()


@dataclass(frozen=True)
class Debian(Installed):
    """A Debian package."""

    package: str

    def present(self):
        try:
            return run(["dpkg-query", "-W", "-f", "${db:Status-Status}", self.package]) == "installed"
        except Unavailable:
            return False

    def install(self):
        privilege = [] if os.geteuid() == 0 else ["sudo", "-n"]
        install = [*privilege, "apt-get", "install", "-y", "--no-install-recommends", self.package]
        try:
            run(install)
        except Unavailable:
            # The package lists may be missing or old.
            run([*privilege, "apt-get", "update"])
            run(install)

    def version(self):
        return run(["dpkg-query", "-W", "-f", "${Version}", self.package])


@dataclass(frozen=True)
class Npm(Installed):
    """A dependency of peers/node/package.json."""

    package: str

    @property
    def installed(self):
        return cache() / "node" / "node_modules" / self.package / "package.json"

    def present(self):
        return shutil.which("node") is not None and self.installed.exists() and self.version() == self.pinned()

    def pinned(self):
        return json.loads((BENCHMARK / "peers/node/package.json").read_text())["dependencies"][self.package]

    def install(self):
        directory = cache() / "node"
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy(BENCHMARK / "peers/node/package.json", directory)
        run(["npm", "install", "--no-audit", "--no-fund", "--prefix", str(directory)])

    def version(self):
        return json.loads(self.installed.read_text())["version"]


@dataclass(frozen=True)
class Go:
    """A Go program, built from a package directory of this repository."""

    directory: str
    name: str
    module: str = ""  # the library that is measured; empty for multilock itself
    tags: str = ""

    @property
    def binary(self):
        return cache() / "bin" / self.name

    def prepare(self, download):
        # Always build, because the sources may have changed; Go caches builds.
        source = {} if download else {"GOPROXY": "off"}
        build = ["go", "build", "-tags", self.tags, "-o", str(self.binary), "."]
        run(build, cwd=REPOSITORY / self.directory, env={**os.environ, "CGO_ENABLED": "0", **source})

    def version(self):
        if self.module:
            return run(["go", "list", "-m", "-f", "{{.Version}}", self.module], cwd=REPOSITORY / self.directory)
        try:
            return run(["git", "describe", "--always", "--dirty"], cwd=REPOSITORY)
        except Unavailable:
            return "working tree"


@dataclass(frozen=True)
class Python(Installed):
    """Debian's Python, for a script of the benchmark."""

    def present(self):
        return os.access("/usr/bin/python3", os.X_OK)

    def install(self):
        raise Unavailable("/usr/bin/python3 is not installed")

    def version(self):
        return run(["/usr/bin/python3", "-V"])


@dataclass(frozen=True)
class Nothing:
    """No requirements."""

    def prepare(self, download):
        pass

    def version(self):
        return ""
