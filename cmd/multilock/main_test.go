//go:build unix

package main_test

import (
	"os"
	"testing"

	"github.com/multilock/go/cmd/multilock/clitest"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock/locktest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == job.GuardArg {
		os.Exit(job.Guard(os.Stdin)) // for a job that a test runs without the binary
	}
	locktest.HearHangups()
	os.Exit(clitest.Main(m, "."))
}
