package wine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/integration/mongolab"
)

const (
	loader   = "/usr/lib/wine/wine64"
	sandbox  = "5c1e0b3a-77f2-4c0d-9c56-0f0d4a9b2e11"
	password = "a secret"
	patience = 30 * time.Second
)

// windows is a Wine prefix and the programs installed in it.
type windows struct {
	prefix, programs string
}

var shared windows

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Getenv("MULTILOCK_WINE") == "" {
			return m.Run() // all tests are skipped
		}
		dir, err := os.MkdirTemp("", "multilock-wine-")
		if err == nil {
			defer os.RemoveAll(dir)
			shared = windows{filepath.Join(dir, "prefix"), filepath.Join(dir, "programs")}
			err = shared.install()
			defer shared.run("wineserver", "-k")
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

func (w windows) environ() []string {
	return append(os.Environ(), "WINEPREFIX="+w.prefix, "WINEDEBUG=-all", "WINEARCH=win64", "DISPLAY=",
		"WINEPATH=Z:"+strings.ReplaceAll(w.programs, "/", `\`))
}

func (w windows) run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Env = append(w.environ(), "GOOS=windows", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return nil
}

// install creates the prefix and the programs. Go's runtime needs ProcessPrng, which Wine 8 lacks, so
// it is forwarded to SystemFunction036, which has the same purpose.
func (w windows) install() error {
	if err := os.MkdirAll(w.programs, 0o755); err != nil {
		return err
	}
	def, object := filepath.Join(w.programs, "prng.def"), filepath.Join(w.programs, "prng.o")
	text := "LIBRARY bcryptprimitives.dll\nEXPORTS\nProcessPrng = advapi32.SystemFunction036\n"
	system := filepath.Join(w.prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	return errors.Join(
		os.WriteFile(def, []byte(text), 0o644),
		w.run(loader, "wineboot", "-i"),
		w.run("x86_64-w64-mingw32-dlltool", "-d", def, "-e", object),
		w.run("x86_64-w64-mingw32-ld", "-shared", "-e", "0", "-o", system, object),
		w.run("go", "build", "-o", filepath.Join(w.programs, "worker.exe"), "./worker"),
		w.run("go", "-C", "../..", "build", "-o", filepath.Join(w.programs, "multilock.exe"), "./cmd/multilock"),
	)
}

// station is a Windows host that shares a server with others.
type station struct {
	t      *testing.T
	dir    string
	source string
	env    []string
}

func newStation(t *testing.T, source string) *station {
	t.Helper()
	return &station{t, t.TempDir(), source, append(shared.environ(), "MULTILOCK_SOURCE="+source, "MULTILOCK_PASSWORD="+password)}
}

// onCloudshell returns a station with a CloudShell server.
func onCloudshell(t *testing.T) (*station, *fakecloudshell.Server) {
	t.Helper()
	server := fakecloudshell.Start(t, fakecloudshell.Options{
		Scheme: fakecloudshell.HTTP, Users: []fakecloudshell.User{{Name: "admin", Password: password, Admin: true}},
		Reservations: []fakecloudshell.Reservation{{ID: sandbox}}, Models: []fakecloudshell.Model{fakecloudshell.OwnedMutex()},
	})
	return newStation(t, "cloudshell://admin@"+server.Address()+"/"+sandbox+"?domain=Global&scheme=http&pause=20ms-100ms"), server
}

// onMongo returns a station with a MongoDB server.
func onMongo(t *testing.T) *station {
	t.Helper()
	server := mongolab.Start(t, mongolab.Options{Disguised: true})
	head, query, _ := strings.Cut(server.URI(), "/?")
	return newStation(t, fmt.Sprintf("%s/%s.locks?%s", head, server.Database(), query))
}

func needWine(t *testing.T) {
	t.Helper()
	if os.Getenv("MULTILOCK_WINE") == "" {
		t.Skip("by hand, with Wine: MULTILOCK_WINE=yes")
	}
}

// everywhere runs a test with each server.
func everywhere(t *testing.T, test func(t *testing.T, s *station)) {
	t.Helper()
	needWine(t)
	t.Run("cloudshell", func(t *testing.T) { s, _ := onCloudshell(t); test(t, s) })
	t.Run("mongodb", func(t *testing.T) { test(t, onMongo(t)) })
}

// onMongoAlone runs a test that needs more than CloudShell, which offers only locks.
func onMongoAlone(t *testing.T, test func(t *testing.T, s *station)) {
	t.Helper()
	needWine(t)
	test(t, onMongo(t))
}

// program is a running multilock.
type program struct {
	*exec.Cmd
	t              *testing.T
	stdout, stderr bytes.Buffer
}

func (s *station) start(args ...string) *program {
	s.t.Helper()
	return s.begin(append([]string{"multilock.exe"}, args...)...)
}

func (s *station) begin(args ...string) *program {
	s.t.Helper()
	p := &program{Cmd: exec.Command(loader, args...), t: s.t}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("%v: %s%s", args, p.stdout.String(), p.stderr.String())
		}
	})
	p.Dir, p.Env, p.Stdout, p.Stderr = s.dir, s.env, &p.stdout, &p.stderr
	p.WaitDelay = time.Second // a process of Wine may outlive the job and keep our pipes open
	require.NoError(s.t, p.Start())
	return p
}

// end waits for the program to end and returns its exit code, of which Wine keeps eight bits.
func (p *program) end() int {
	p.t.Helper()
	late := time.AfterFunc(patience, func() { _ = p.Process.Kill() })
	defer late.Stop()
	_ = p.Wait()
	return p.ProcessState.ExitCode()
}

func (s *station) run(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	p := s.start(args...)
	code = p.end()
	return code, strings.ReplaceAll(p.stdout.String(), "\r\n", "\n"), strings.ReplaceAll(p.stderr.String(), "\r\n", "\n")
}

// beats waits until a process appends to a file.
func (s *station) beats(name string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return s.size(name) > 0 }, patience, 10*time.Millisecond, "nothing appends to %s", name)
}

// still fails if a process appends to a file.
func (s *station) still(name string) {
	s.t.Helper()
	before := s.size(name)
	time.Sleep(500 * time.Millisecond)
	require.Equal(s.t, before, s.size(name), "a process still appends to %s", name)
}

func (s *station) size(name string) int64 {
	info, err := os.Stat(filepath.Join(s.dir, name))
	if err != nil {
		return 0
	}
	return info.Size()
}
