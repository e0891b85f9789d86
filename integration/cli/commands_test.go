package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sources on servers. CloudShell has only locks; the others can do all that a directory can.
var sources = map[string]func(*testing.T) *station{
	"cloudshell": func(t *testing.T) *station { s, _ := cloudshellStation(t); return s },
	"etcd":       etcdStation,
	"postgres":   postgresStation,
	"mongodb":    func(t *testing.T) *station { s, _ := mongoStation(t); return s },
	"s3":         s3Station,
}

// TestCommands runs commands that use much of a source, with each source. Each test has its own group,
// because all tests of a source share one server.
func TestCommands(t *testing.T) {
	t.Parallel()
	for name, open := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			tests := map[string]func(*station){
				"run": testRun, "shared": testShared, "acquire": testAcquire, "batch": testBatch, "barrier": testBarrier, "doctor": testDoctor, "help in need": testClearing,
			}
			if name == "cloudshell" {
				delete(tests, "batch")
				delete(tests, "barrier")
			}
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(&station{t, append(slices.Clip(s.vars), "MULTILOCK_GROUP="+strings.ReplaceAll(name, " ", "-")), s.secrets})
				})
			}
		})
	}
}

// One of two runs the job, and the other names the holder.
func testRun(s *station) {
	holder := s.hold("-n", "x")
	got := s.run("run", "-n", "x", "--", "echo", "not to be seen")
	require.Equal(s, 121, got.code, got.stderr)
	require.Empty(s, got.stdout)
	require.Contains(s, got.stderr, fmt.Sprintf(" pid %d ", holder.PID()))
	require.Contains(s, got.stderr, "sh -c 'echo ready; exec cat'")
	require.Equal(s, ended{7, "", ""}, s.run("run", "-n", "x", "-q", "-E", "7", "--", "true"))
	require.Equal(s, ended{0, "ready\n", ""}, holder.end())
	got = s.run("run", "-n", "x", "--json", "--", "sh", "-c", "exit 3")
	require.Equal(s, 3, got.code)
	var report struct {
		JobExit int  `json:"job_exit"`
		Ran     bool `json:"ran"`
		Fence   uint64
	}
	require.NoError(s, json.Unmarshal([]byte(got.stderr), &report), got.stderr)
	require.Equal(s, 3, report.JobExit)
	require.True(s, report.Ran)
	require.Positive(s, report.Fence)
}

// The holder of acquire's lock is a shell; another command releases the lock.
func testAcquire(s *station) {
	shell := s.holding(s.shell(`token=$(multilock acquire -n x) || exit; echo ready $token; cat`))
	token := strings.Fields(shell.Out.String())[1]
	held := s.lock("x")
	require.Equal(s, "held", held.State, held.Why)
	require.Equal(s, token, held.Token)
	require.Equal(s, 122, s.run("release", "-n", "x", "--token", "another").code)
	s.must("release", "-n", "x", "--token", token)
	require.Equal(s, "free", s.lock("x").State)
	require.Zero(s, shell.end().code)

	s.must("acquire", "-n", "y", "--detach", "--ttl", "1h")
	require.Equal(s, "held", s.lock("y").State)
	require.Contains(s, s.must("status"), "y")
	require.Equal(s, 121, s.run("break", "y").code)
	require.Contains(s, s.must("break", "y", "--force", "--now"), `broke lock "y"`)
	require.Equal(s, "free", s.lock("y").State)
}

// Two batches with the same list run each of its jobs once.
func testBatch(s *station) {
	log := filepath.Join(s.TempDir(), "ran")
	var lines []string
	for i := range 12 {
		lines = append(lines, fmt.Sprintf("job%d\techo %d >> %s", i, i, log))
	}
	list := s.write(strings.Join(lines, "\n"))
	hosts := []*running{s.begin(s.command("batch", "-j2", list)), s.begin(s.command("batch", "-j2", list))}
	for _, host := range hosts {
		got := host.wait()
		require.Zero(s, got.code, got.stderr)
	}
	content, err := os.ReadFile(log)
	require.NoError(s, err)
	ran := strings.Fields(string(content))
	slices.Sort(ran)
	require.Len(s, slices.Compact(slices.Clone(ran)), 12)
	require.Len(s, ran, 12)
	s.must("batch", list)
	after, err := os.ReadFile(log)
	require.NoError(s, err)
	require.Equal(s, content, after, "no job runs again")
	require.Contains(s, s.must("status"), "12 of 12 jobs done\n")
}

func testBarrier(s *station) {
	holder := s.hold("-n", "x", "--once")
	barrier := s.begin(s.command("wait", "--members", "x", "--poll", "50ms"))
	require.Equal(s, 124, s.run("wait", "--timeout", "300ms").code)
	require.Zero(s, holder.end().code)
	got := barrier.wait()
	require.Zero(s, got.code, got.stderr)
	s.must("wait")
}

// finding is a finding of doctor. A healthy server can still have warnings, such as one about a missing
// replica set.
type finding struct{ Subject, Severity, Text string }

func testDoctor(s *station) {
	got := s.run("doctor", "--json")
	require.Contains(s, []int{0, 1}, got.code, got.stdout)
	var report struct {
		Findings   []finding
		Guarantees []struct {
			Trait string
			Kept  *bool
		}
	}
	require.NoError(s, json.Unmarshal([]byte(got.stdout), &report))
	at := slices.IndexFunc(report.Findings, func(f finding) bool { return f.Subject == "trial" })
	require.GreaterOrEqual(s, at, 0)
	require.Equal(s, "ok", report.Findings[at].Severity, report.Findings[at].Text)
	for _, guarantee := range report.Guarantees {
		require.NotNil(s, guarantee.Kept, guarantee.Trait)
	}
	require.Empty(s, s.locks(), "doctor has released its own lock")
}

// The suggested command can be pasted anywhere: it contains the source and the group, and no secret.
// The password still comes from its usual place.
func testClearing(s *station) {
	s.must("acquire", "-n", "x", "--detach", "--ttl", "1h")
	got := s.run("run", "-n", "x", "--", "true")
	require.Equal(s, 121, got.code)
	_, clearing, found := strings.Cut(strings.TrimSpace(got.stderr), "clear it with: ")
	require.True(s, found, got.stderr)
	elsewhere := s.with("MULTILOCK_SOURCE=", "MULTILOCK_GROUP=")
	cleared := elsewhere.begin(elsewhere.shell(clearing)).end()
	require.Zero(s, cleared.code, "%s: %s", clearing, cleared.stderr)
	require.Equal(s, "free", s.lock("x").State)
}

// doctor --join works with every source, and releases all its locks. It warns that all participants run
// on one host.
func TestDoctorsMeet(t *testing.T) {
	t.Parallel()
	for name, open := range sources {
		if name == "s3" && testing.Short() {
			continue // 40 s on an idle machine, because waiters poll up to every 5 s
		}
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
					Findings []finding
					Join     struct {
						Turns  int
						Fences []uint64
						Hosts  []struct {
							State       string
							NotAcquired int `json:"not_acquired"`
							Turns       int
						}
					}
				}
				require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), got.stderr)
				require.Equal(t, 1, got.code, report.Findings)
				require.Len(t, report.Join.Fences, report.Join.Turns)
				require.Len(t, report.Join.Hosts, 1)
				other := report.Join.Hosts[0]
				require.Equal(t, "complete", other.State, report.Findings)
				require.Positive(t, other.NotAcquired)
				require.Positive(t, other.Turns)
			}
			require.Empty(t, s.locks())
		})
	}
}

// Readers share a lock and a writer waits for them, with every source.
func testShared(s *station) {
	one := s.hold("--shared", "-n", "db.shared")
	two := s.hold("--shared", "-n", "db.shared")
	got := s.run("run", "-n", "db.shared", "--", "true")
	require.Equal(s, 121, got.code, got.stderr)
	require.Contains(s, got.stderr, "db.shared#reader-")
	writer := s.begin(s.command("run", "-n", "db.shared", "--wait", "1m", "--", "echo", "alone"))
	require.Zero(s, one.end().code)
	require.Zero(s, two.end().code)
	require.Equal(s, "alone\n", writer.end().stdout)
	s.must("run", "--shared", "-n", "db.shared", "--", "true")
}
