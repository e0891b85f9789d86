# Spack: packages/multilock/package.py
import platform

from spack.package import *

_systems = {
    ("Linux", "x86_64"): ("linux-amd64", "@SHA_linux-amd64@"),
    ("Linux", "aarch64"): ("linux-arm64", "@SHA_linux-arm64@"),
    ("Linux", "ppc64le"): ("linux-ppc64le", "@SHA_linux-ppc64le@"),
    ("Darwin", "arm64"): ("darwin-arm64", "@SHA_darwin-arm64@"),
}


class Multilock(Package):
    """A lock and job runner for clusters whose hosts share only a filesystem."""

    homepage = "https://github.com/multilock/go"
    license("Apache-2.0")

    _release = _systems.get((platform.system(), platform.machine()))
    if _release:
        version(
            "@VERSION@",
            sha256=_release[1],
            url=f"https://github.com/multilock/go/releases/download/v@VERSION@/multilock-@VERSION@-{_release[0]}.tar.gz",
        )

    def install(self, spec, prefix):
        mkdirp(prefix.bin, prefix.share)
        install("multilock", prefix.bin)
        install("multilock-full", prefix.bin)
        install_tree("man", prefix.share.man)
        install_tree("doc", prefix.share.doc.multilock)
