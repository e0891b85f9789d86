//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// programAs is a station with a program of another name or build.
type programAs struct {
	*station
	binary string
}

func (p programAs) runIt(args ...string) ended {
	p.t.Helper()
	cmd := clitest.Command(p.t, nil, args...)
	cmd.Path, cmd.Args[0] = p.binary, p.binary
	return p.finish(cmd)
}

// A program that was built without a source names the program that has it. It does not run that program,
// because any user who can write to its directory could replace it.
func TestSmallBuild(t *testing.T) {
	t.Parallel()
	small := programAs{newStation(t), filepath.Join(t.TempDir(), "multilock")}
	require.NoError(t, clitest.Build(".", small.binary, clitest.Small))
	beside := filepath.Join(filepath.Dir(small.binary), "multilock-full")
	require.NoError(t, os.WriteFile(beside, []byte("#!/bin/sh\necho ran; exit 7\n"), 0o700)) //nolint:gosec // it could be run

	for url, lacked := range map[string]string{
		"mongodb://h/d.c": "MongoDB", "mongodb+srv://h/d.c": "MongoDB", "cook+mongodb://h/d.c?period=5m": "MongoDB",
		"cook+mongodb+srv://h/d.c?period=5m": "MongoDB", "cloudshell://u@h/4711": "CloudShell", "cloudshell:": "CloudShell",
		"etcd://h1,h2/jobs": "etcd", "s3://bucket/jobs?region=r": "S3", "postgres://u@h/d": "PostgreSQL", "postgresql://u@h/d": "PostgreSQL",
		"cook+etcd://h1,h2/jobs?period=5m": "etcd", "cook+postgres://u@h/d?period=5m": "PostgreSQL", "cook+postgresql://u@h/d?period=5m": "PostgreSQL",
	} {
		got := small.runIt("--source", url, "run", "--", "true")
		require.Equal(t, 125, got.code, url)
		require.Empty(t, got.stdout, url)
		require.Contains(t, got.stderr, lacked+" is not built into this program; use multilock-full", url)
	}
	pinging := small.runIt("-d", small.base, "run", "--ping", "http://localhost/x", "--", "true")
	require.Equal(t, ended{125, "", "multilock: run: --ping: HTTP is not built into this program; use multilock-full\n"}, pinging)
	for _, place := range [][]string{{"-d", small.base}, {"--source", "cook+file://" + small.base + "?period=5m"}} {
		require.Equal(t, ended{0, "done\n", ""}, small.runIt(append(place, "run", "--", "echo", "done")...))
	}
}

// A command in a message is for the program that prints the message, because another program may lack the
// source.
func TestCommandsNameTheirProgram(t *testing.T) {
	t.Parallel()
	full := programAs{newStation(t), filepath.Join(t.TempDir(), "multilock-full")}
	require.NoError(t, os.Symlink(clitest.Binary(), full.binary))
	full.runIt("-d", full.base, "run", "-n", "x", "--once", "--", "false")
	got := full.runIt("-d", full.base, "run", "-n", "x", "--once", "--", "false")
	require.Contains(t, got.stderr, "to run it again: multilock-full -d "+full.base+" clean --results x")
}
