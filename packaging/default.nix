# Nix: nix-build -E '(import <nixpkgs> {}).callPackage ./default.nix {}'
{ lib, stdenvNoCC, fetchurl }:
let
  systems = {
    x86_64-linux = { name = "linux-amd64"; sha256 = "@SHA_linux-amd64@"; };
    aarch64-linux = { name = "linux-arm64"; sha256 = "@SHA_linux-arm64@"; };
    aarch64-darwin = { name = "darwin-arm64"; sha256 = "@SHA_darwin-arm64@"; };
  };
  release = systems.${stdenvNoCC.hostPlatform.system};
in
stdenvNoCC.mkDerivation rec {
  pname = "multilock";
  version = "@VERSION@";
  src = fetchurl {
    url = "https://github.com/multilock/go/releases/download/v${version}/multilock-${version}-${release.name}.tar.gz";
    inherit (release) sha256;
  };
  dontBuild = true;
  installPhase = ''
    install -D -m 755 -t $out/bin multilock multilock-full
    mkdir -p $out/share
    cp -r man $out/share
  '';
  meta = {
    description = "Lock and job runner for clusters whose hosts share only a filesystem";
    homepage = "https://github.com/multilock/go";
    license = lib.licenses.asl20;
    mainProgram = "multilock";
    platforms = builtins.attrNames systems;
  };
}
