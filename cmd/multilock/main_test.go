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
	// Without these sources, which have tests in integration/cli, the binary starts twice as fast.
	os.Exit(clitest.Main(m, ".", "no_mongodb", "no_etcd", "no_cloudshell", "no_s3"))
}
