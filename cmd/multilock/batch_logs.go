package main

import (
	"path/filepath"
	"strings"
)

// logPath is where the output of a batch's job is kept: in the directory of --logs, with the
// locks if those live in a directory, and here otherwise.
func logPath(src *openedSource, dir, name string) string {
	if dir == "" {
		if keeper, ok := src.locks.(interface{ LogPath(name string) string }); ok {
			return keeper.LogPath(name)
		}
		dir = filepath.Join("multilock-logs", fileName(src.opt.group))
	}
	return filepath.Join(absolute(dir), fileName(name)+".log")
}

// fileName is a name that a file can have: no source forbids what a file system does.
func fileName(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return strings.NewReplacer("%", "%25", "/", "%2F", "\x00", "%00").Replace(name)
}
