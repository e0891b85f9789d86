package command

import (
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock/source"
)

// findRun says what becomes of jobs on this system, whatever the source.
func findRun() source.Finding {
	f := source.Finding{Subject: "run", Severity: source.SeverityFine, Text: job.Reach}
	if !job.Starts {
		f.Severity = source.SeverityWarning
		f.Advice = "take the lock with acquire --pid, or from a Go program; run and batch are for Linux, macOS and FreeBSD"
	}
	return f
}
