package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/jointest"
	"github.com/multilock/go/multilock/source"
)

// The first sentence says whether to use locks here, and which hosts tested them.
func TestAssessments(t *testing.T) {
	t.Parallel()
	met := func(hosts ...string) *jointest.Report {
		r := &jointest.Report{}
		for _, h := range hosts {
			r.Hosts = append(r.Hosts, jointest.Host{Host: h, End: jointest.EndComplete})
		}
		r.Hosts = append(r.Hosts, jointest.Host{Host: "late", End: "left"})
		return r
	}
	fine, soft, old := source.Fine("trial", "it works"), source.Warning("mount", "it is soft", ""), source.Warning("server", "it is old", "")
	harm := source.Unusable("join", "two hosts held one lock", "")
	for want, c := range map[string]struct {
		report DoctorReport
		code   int
		shown  int
	}{
		"Locks work here, as far as one host can test.":                {DoctorReport{Findings: []source.Finding{fine}}, console.ExitOK, -1},
		"Locks are safe here, between a and b.":                        {DoctorReport{Host: "a", Join: met("b")}, console.ExitOK, -1},
		"Locks are safe here, between a, b and c.":                     {DoctorReport{Host: "a", Join: met("b", "c", "b", "a")}, console.ExitOK, -1},
		"Locks work here, with a warning: it is soft":                  {DoctorReport{Findings: []source.Finding{fine, soft}}, console.ExitNotDone, 1},
		"Locks work here, between a and b, with a warning: it is soft": {DoctorReport{Host: "a", Join: met("b"), Findings: []source.Finding{soft}}, console.ExitNotDone, 0},
		"Locks work here, with 2 warnings.":                            {DoctorReport{Findings: []source.Finding{soft, old}}, console.ExitNotDone, -1},
		"Locks do not work here: two hosts held one lock":              {DoctorReport{Findings: []source.Finding{soft, harm}}, console.ExitFailure, 1},
		"Do not use locks here: two hosts held one lock":               {DoctorReport{Host: "a", Join: met("b"), Findings: []source.Finding{harm, soft}}, console.ExitFailure, 0},
		"Locks were not tested between hosts: two hosts held one lock": {DoctorReport{Join: met(), unshown: true, Findings: []source.Finding{harm}}, console.ExitFailure, 0},
	} {
		require.Equal(t, assessment{c.code, want, c.shown}, c.report.assessment())
	}
}
