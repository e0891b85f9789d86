package main

import (
	"runtime/debug"

	"github.com/multilock/go/cmd/multilock/internal/command"
)

// stamp is the version of what scripts/build has built, which sets it: the tag and the commit.
// commit is the whole name of that.
var stamp, commit string

// version is what is known of how this program was built.
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
