package wine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExitCodes(t *testing.T) {
	everywhere(t, func(t *testing.T, s *station) {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "text.exe"), []byte("no program"), 0o755))
		for want, command := range map[int][]string{
			0: {"worker", "exit", "0"}, 42: {"worker", "exit", "42"}, 127: {"no-such-command"}, 126: {`.\text.exe`},
		} {
			code, _, stderr := s.run(append([]string{"run", "-n", "x", "--"}, command...)...)
			require.Equal(t, want, code, "%v: %s", command, stderr)
		}
	})
}

func TestOutputAndArguments(t *testing.T) {
	everywhere(t, func(t *testing.T, s *station) {
		args := []string{"a b", `c"d`, `e\`, "", "%PATH%"}
		code, stdout, stderr := s.run(append([]string{"run", "-n", "x", "--", "worker", "print"}, args...)...)
		require.Zero(t, code, stderr)
		require.Equal(t, strings.Join(args, "\n")+"\n", stdout)
		_, stdout, _ = s.run("run", "-n", "x", "--", "worker", "env", "MULTILOCK_NAME")
		require.Equal(t, "x\n", stdout)
	})
}

func TestOneAtATime(t *testing.T) {
	everywhere(t, func(t *testing.T, s *station) {
		holder := s.start("run", "-n", "x", "--", "worker", "beat", "holder")
		s.beats("holder")
		code, _, stderr := s.run("run", "-n", "x", "--", "worker", "exit", "0")
		require.Equal(t, 121, code, stderr)
		code, _, stderr = s.run("status", "x")
		require.Equal(t, 121, code, stderr)
		require.NoError(t, holder.Process.Kill())
		holder.end()
	})
}

// TestKilled: killing multilock also ends its job, with all processes that the job has started.
func TestKilled(t *testing.T) {
	everywhere(t, func(t *testing.T, s *station) {
		p := s.start("run", "-n", "x", "--", "worker", "parent", "child")
		s.beats("child")
		s.beats("child.parent")
		require.NoError(t, p.Process.Kill())
		p.end()
		s.still("child")
		s.still("child.parent")
	})
}

func TestTimeLimit(t *testing.T) {
	everywhere(t, func(t *testing.T, s *station) {
		code, _, stderr := s.run("run", "-n", "x", "--max-runtime", "3s", "--grace", "500ms", "--", "worker", "parent", "child")
		require.Equal(t, 124, code, stderr)
		require.NotZero(t, s.size("child"))
		s.still("child")
		s.still("child.parent")
	})
}

// TestLost: a job whose lock was taken away is ended before another process can start.
func TestLost(t *testing.T) {
	needWine(t)
	s, server := onCloudshell(t)
	p := s.start("run", "-n", "x", "--ttl", "6s", "--grace", "200ms", "--", "worker", "parent", "child")
	s.beats("child")
	require.NoError(t, server.DeleteService(sandbox, "x"))
	require.Equal(t, 122, p.end(), p.stderr.String())
	s.still("child")
	s.still("child.parent")
}

// TestLeftBehind: a process that a command leaves running on purpose keeps running, as on other
// systems.
func TestLeftBehind(t *testing.T) {
	everywhere(t, func(t *testing.T, s *station) {
		code, _, stderr := s.run("run", "-n", "x", "--", "worker", "leave", "child")
		require.Equal(t, 3, code, stderr)
		s.beats("child")
		before := s.size("child")
		require.Eventually(t, func() bool { return s.size("child") > before }, patience, 10*time.Millisecond)
	})
}

func TestBatch(t *testing.T) {
	onMongoAlone(t, func(t *testing.T, s *station) {
		list := "one\tworker print \"a b\" c\r\ntwo\techo x ^& y & echo z\r\nthree\tworker exit 7\r\n"
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "jobs.txt"), []byte(list), 0o644))
		code, stdout, stderr := s.run("-g", "list", "batch", "-j", "2", "--joblog", "job.log", "jobs.txt")
		require.Equal(t, 1, code, stdout+stderr)
		for name, want := range map[string]string{"one": "a b\nc\n", "two": "x & y \nz\n"} {
			printed, err := os.ReadFile(filepath.Join(s.dir, "multilock-logs", "list", name+".log"))
			require.NoError(t, err, stderr)
			require.Equal(t, want, strings.ReplaceAll(string(printed), "\r\n", "\n"))
		}
		log, err := os.ReadFile(filepath.Join(s.dir, "job.log"))
		require.NoError(t, err)
		require.Equal(t, 4, strings.Count(string(log), "\n"), string(log))
		code, stdout, stderr = s.run("-g", "args", "batch", "--print", "worker print {}", ":::", "a b", "c&d")
		require.Zero(t, code, stdout+stderr)
		require.Contains(t, stdout, "a b\n")
		require.Contains(t, stdout, "c&d\n")
		code, _, stderr = s.run("-g", "args2", "batch", "worker print {}", ":::", "%PATH%")
		require.Equal(t, 125, code)
		require.Contains(t, stderr, "cmd.exe")
	})
}

// TestBatchKilled: a killed batch leaves none of its jobs running, and another batch runs the remaining
// jobs.
func TestBatchKilled(t *testing.T) {
	onMongoAlone(t, func(t *testing.T, s *station) {
		p := s.start("-g", "list", "batch", "-j", "2", "worker parent {}", ":::", "one", "two")
		for _, name := range []string{"one", "two", "one.parent", "two.parent"} {
			s.beats(name)
		}
		require.NoError(t, p.Process.Kill())
		p.end()
		for _, name := range []string{"one", "two", "one.parent", "two.parent"} {
			s.still(name)
		}
	})
}

func TestBatchTimeout(t *testing.T) {
	onMongoAlone(t, func(t *testing.T, s *station) {
		code, stdout, stderr := s.run("-g", "list", "batch", "--timeout", "3s", "--grace", "500ms", "worker parent {}", ":::", "one")
		require.Equal(t, 1, code, stdout+stderr)
		s.beats("one")
		s.still("one")
		s.still("one.parent")
	})
}

// TestAcquire: a script acquires and releases a lock, and a keeper renews it in between.
func TestAcquire(t *testing.T) {
	everywhere(t, func(t *testing.T, s *station) {
		script := "@echo off\r\nmultilock acquire -n kept --ttl 6s >token.txt\r\nif not %ERRORLEVEL%==0 exit /b 90\r\n" +
			"set /p token=<token.txt\r\nworker sleep 9s\r\nmultilock status kept\r\nif not %ERRORLEVEL%==121 exit /b 91\r\n" +
			"multilock release -n kept --token %token%\r\nif not %ERRORLEVEL%==0 exit /b 92\r\n" +
			"multilock status kept\r\nif not %ERRORLEVEL%==0 exit /b 93\r\n"
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, "script.bat"), []byte(script), 0o644))
		p := s.begin("cmd.exe", "/c", "script.bat")
		require.Zero(t, p.end(), p.stdout.String()+p.stderr.String())
	})
}
