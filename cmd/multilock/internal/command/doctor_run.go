package command

import (
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock/source"
)

// findRun says what becomes of jobs on this system, whatever the source.
func findRun() source.Finding {
	return source.Finding{Subject: "run", Severity: source.SeverityFine, Text: job.Reach}
}
