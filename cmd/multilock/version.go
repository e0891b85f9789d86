package main

import (
	"runtime/debug"

	"github.com/multilock/go/cmd/multilock/internal/command"
)

// stamp and commit are set by scripts/build: the version, made of the tag and the commit, and the full commit
// ID.
var stamp, commit string

// version returns what is known about the build of this program.
func version() command.Build {
	b := command.Build{Version: stamp, Commit: commit}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b.Complete()
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" && b.Commit == "" {
			b.Commit = setting.Value
		}
	}
	return b.Complete()
}
