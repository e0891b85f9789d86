package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Doctors meet wherever locks live, and give all of them back. That they run on one
// host is what they warn of.
func TestDoctorsMeet(t *testing.T) {
	t.Parallel()
	for name, open := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			var doctors []*running
			for range 2 {
				doctors = append(doctors, s.begin(s.command("doctor", "--join", "--json")))
			}
			for _, d := range doctors {
				got := d.end()
				var report struct {
					Findings []struct{ Subject, Severity, Text string }
					Join     struct {
						Turns  int
						Fences []uint64
						Hosts  []struct {
							End            string
							Refused, Turns int
						}
					}
				}
				require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), got.stderr)
				require.Equal(t, 1, got.code, report.Findings)
				require.Len(t, report.Join.Fences, report.Join.Turns)
				require.Len(t, report.Join.Hosts, 1)
				other := report.Join.Hosts[0]
				require.Equal(t, "complete", other.End, report.Findings)
				require.Positive(t, other.Refused)
				require.Positive(t, other.Turns)
			}
			require.Empty(t, s.locks())
		})
	}
}
