//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// overdueReport is the part of "overdue --json" that the tests read.
type overdueReport struct {
	Severity, Error string
	Exit, Done      int
	Jobs            []overdueJob
}

type overdueJob struct {
	Name, Severity, State, Why, Every string
	Tick, Due                         time.Time
	Succeeded                         time.Time              `json:"last_success"`
	Late                              float64                `json:"late_seconds"`
	Missed                            int                    `json:"missed_ticks"`
	Running                           *struct{ Host string } `json:"lock"`
}

// overdue runs the command, and requires that its exit code is the reported one.
func (s *station) overdue(args ...string) overdueReport {
	s.t.Helper()
	got := s.run(append([]string{"overdue", "--json"}, args...)...)
	var report overdueReport
	require.NoError(s.t, json.Unmarshal([]byte(got.stdout), &report), got)
	require.Equal(s.t, report.Exit, got.code)
	require.Empty(s.t, got.stderr)
	return report
}

// severities returns the names of the jobs with their severities and states.
func (r overdueReport) severities() map[string]string {
	found := map[string]string{}
	for _, job := range r.Jobs {
		found[job.Name] = job.Severity + ", " + job.State
	}
	return found
}

// ran records the result of a job that ran with --every some time ago.
func (s *station) ran(name, every string, ago time.Duration, exit int) {
	s.t.Helper()
	tick := time.Now().Add(-ago).UTC()
	succeeded := ""
	if exit == 0 {
		succeeded = fmt.Sprintf(`"succeeded":%q,`, tick.Format(time.RFC3339Nano))
	}
	s.spoil(name, fmt.Sprintf(`{"v":1,"group":".locks","name":%q,"token":"t","by":{"host":"alpha"},"exit":%d,"attempt":1,"final":true,`+
		`"tick":%[3]q,"began":%[3]q,"every":%[4]q,%[5]s"start":%[3]q,"duration_ns":1}`+"\n", name, exit, tick.Format(time.RFC3339Nano), every, succeeded))
}

func TestOverdue(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "hourly", "--every", "1h", "--", "true")
	s.must("run", "-n", "page7", "--once", "--", "true")
	got := s.run("overdue")
	require.Zero(t, got.code)
	require.Regexp(t, `^OVERDUE OK - 2 jobs \| jobs=2 late=0 failed=0 unknown=0\nNAME .*\nhourly +ok +on_time .* 1h *\n$`, got.stdout)
	require.Equal(t, ended{0, "", ""}, s.run("overdue", "-q"))

	s.ran("nightly", "1d", 30*time.Hour, 0)
	require.Equal(t, "ok, on_time", s.overdue().severities()["nightly"], "half a day is not over")
	require.Equal(t, "critical, late", s.overdue("--within", "2h").severities()["nightly"])
	s.ran("broken", "1h", time.Minute, 3)
	s.ran("dead", "10m", 5*time.Hour, 0)
	report := s.overdue()
	require.Equal(t, 2, report.Exit)
	require.Equal(t, 1, report.Done, "what runs once and for all is counted alone")
	require.Equal(t, map[string]string{"hourly": "ok, on_time", "nightly": "ok, on_time", "broken": "critical, failed", "dead": "critical, late"}, report.severities())
	got = s.run("overdue", "-q")
	require.Regexp(t, `^OVERDUE CRITICAL - 5 jobs: broken failed, dead is late by 4h50m \| jobs=5 late=1 failed=1 unknown=0\n$`, got.stdout)
	require.Equal(t, 2, got.code)
	require.Equal(t, map[string]string{"hourly": "ok, on_time", "page7": "ok, done"}, s.overdue("hourly", "page7").severities())
	require.Regexp(t, `dead .* critical +late .* it should have run; \d\d missed`, s.run("overdue", "dead").stdout)
}

// If the status is unknown, that is reported with a monitor's exit code, on the standard output, which is all
// that a monitor shows.
func TestOverdueUnknown(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, args := range [][]string{
		{}, {"-g", "nowhere"}, {"-d", "/nowhere/at/all"}, {"nightly"}, {"--expect-every", "1d"}, {"nightly", "--expect-every", "0"}, {"a/b"}, {"--source", "gopher://x"},
	} {
		got := s.run(append([]string{"overdue"}, args...)...)
		require.Equal(t, 3, got.code, args)
		require.Regexp(t, `^OVERDUE UNKNOWN - .*\n`, got.stdout, args)
		require.Empty(t, got.stderr, args)
	}
	for _, args := range [][]string{{"--within", "soon"}, {"--nonsense"}} {
		require.Equal(t, 3, s.run(append([]string{"overdue"}, args...)...).code, args)
	}
	require.Equal(t, 125, s.run("status", "--nonsense").code)
	s.requireUntouched()

	s.spoil("torn", `{"v":1,"name":"torn","ex`)
	s.ran("tomorrow", "1h", -24*time.Hour, 0)
	s.ran("dead", "1h", 5*time.Hour, 0)
	require.Equal(t, map[string]string{"torn": "unknown, unknown", "tomorrow": "unknown, unknown"}, s.overdue("torn", "tomorrow").severities())
	require.Equal(t, 2, s.overdue().Exit, "that one is late is known")
	require.Contains(t, s.overdue("-d", "/nowhere/at/all").Error, "does not exist")
}

// A running job that started in time is not late. A job that started late, or still runs when its next tick
// is due, is late.
func TestOverdueWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.ran("intime", "1h", 91*time.Minute, 0)
	s.ran("toolate", "1h", 110*time.Minute, 0)
	s.ran("endless", "1h", 10*time.Hour, 0)
	s.ran("again", "1h", 40*time.Minute, 3)
	for _, name := range []string{"toolate", "endless", "again", "first"} {
		defer s.hold(name).end()
	}
	require.Equal(t, map[string]string{
		"intime": "critical, late", "toolate": "warning, late", "endless": "critical, late", "again": "warning, failed", "first": "ok, running",
	}, s.overdue("intime", "toolate", "endless", "again", "first").severities())

	defer s.hold("intime").end()
	require.Equal(t, "warning, late", s.overdue("intime").severities()["intime"])
	s.ran("intime", "1h", 90*time.Minute, 0) // so it started before it was late
	report := s.overdue("intime")
	require.Equal(t, "ok, running", report.severities()["intime"])
	require.NotNil(t, report.Jobs[0].Running)
}

// A job without ticks is judged by its history, if the expected period is given.
func TestOverdueExpected(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "plain", "--", "true")
	require.Equal(t, 1, s.run("run", "-n", "failing", "--", "false").code)
	s.must("run", "-n", "slotted", "--slots", "2", "--", "true")
	token := strings.TrimSpace(s.must("acquire", "-n", "script", "--detach", "--ttl", "1m"))
	s.must("release", "-n", "script", "--token", token)
	require.Equal(t, map[string]string{
		"plain": "ok, on_time", "slotted": "ok, on_time", "script": "ok, on_time", "failing": "critical, late", "unheard": "unknown, unknown",
	}, s.overdue("plain", "slotted", "script", "failing", "unheard", "--expect-every", "1h").severities())
	require.Equal(t, "unknown, unknown", s.overdue("plain").severities()["plain"])
	s.eventually("a second is over", func() bool {
		return s.overdue("plain", "--expect-every", "1s").severities()["plain"] == "critical, late"
	})
	s.ran("nightly", "1h", 20*time.Hour, 0)
	require.Equal(t, "ok, on_time", s.overdue("nightly", "--expect-every", "1d").severities()["nightly"], "it is said to be enough")
}

// A job whose first run hangs or died is late, although it has no result: its lock records how often it runs.
func TestOverdueInItsFirstRun(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	defer s.hold("plain").end()
	require.Equal(t, 3, s.overdue().Exit, "nobody expects it again")
	defer s.hold("nightly", "--every", "1d").end()
	defer s.hold("page7", "--once").end()
	require.Equal(t, map[string]string{"nightly": "ok, running", "page7": "ok, running"}, s.overdue().severities())
	dies := s.hold("page8", "--once")
	dies.Signal(syscall.SIGKILL)
	dies.Wait()
	s.eventually("its job has ended, too", func() bool { // others come and go on a busy host: each look may be unsure of that
		report := s.overdue()
		return report.severities()["page8"] == "warning, retry" && report.Exit == 1
	})
	s.eventually("it is said what becomes of it", func() bool {
		return strings.Contains(s.run("overdue", "page8").stdout, "its first run died; the next host that tries runs it again")
	})
	s.must("run", "-n", "page8", "--once", "--wait", "1m", "--", "true")
	hang := s.hold("hang", "--every", "1s")
	isLate := func(args ...string) func() bool {
		return func() bool { return s.overdue(args...).severities()["hang"] == "critical, late" }
	}
	s.eventually("it should have ended", isLate())
	require.True(t, isLate("hang")())
	require.Regexp(t, `hang .* its first run should have ended; it has been running on `, s.run("overdue").stdout)
	require.Equal(t, map[string]string{"nightly": "ok, running", "page7": "ok, running"}, s.overdue("--within", "1h", "nightly", "page7").severities())
	s.eventually("so long it was given", func() bool { return s.overdue("--within", "1s").severities()["page7"] == "critical, late" })
	require.Contains(t, s.must("metrics", "-q"), `multilock_late{group=".locks",name="hang"} 1`)
	hang.Signal(syscall.SIGKILL)
	hang.Wait()
	require.True(t, isLate()())
	s.must("break", "--force", "--now", "hang")
	require.NotContains(t, s.overdue().severities(), "hang")
}
