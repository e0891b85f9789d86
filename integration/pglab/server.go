package pglab

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
)

// User owns everything in the servers. DB is the database of each server.
const (
	User = "ada"
	DB   = "work"
)

// Options configure a server.
type Options struct {
	// Settings are settings of postgresql.conf.
	Settings map[string]string
	// Access is pg_hba.conf, "" for one that trusts all connections from this host.
	Access string
}

// Server is a server on the loopback interface, with its own data directory.
type Server struct {
	testing.TB
	Address string
	dir     string
	args    []string
	cmd     *exec.Cmd
	input   *os.File
	pid     int // of the postmaster, 0 if the server is not running
}

const (
	trusting = "local all all trust\nhost all all 127.0.0.0/8 trust\nhost replication all 127.0.0.0/8 trust\n"
	patience = time.Minute
)

// Installed returns the directory of Debian's PostgreSQL binaries, "" if they are not installed.
var Installed = sync.OnceValue(func() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
})

// Start starts a server with an empty database.
func Start(t testing.TB, opt Options) *Server {
	t.Helper()
	s := prepare(t)
	s.furnish(opt)
	s.Begin()
	return s
}

// furnish copies the template's data to the server and applies the options.
func (s *Server) furnish(opt Options) {
	s.Helper()
	copied := asServer("cp", "-a", template(s)+"/.", s.dir)
	out, err := copied.CombinedOutput()
	require.NoError(s, err, "%s", out)
	if opt.Access != "" {
		s.Write("pg_hba.conf", opt.Access)
	}
	s.set(opt.Settings)
}

// prepare returns a server without data.
func prepare(t testing.TB) *Server {
	t.Helper()
	s := &Server{TB: t, dir: filepath.Join(folder(t), "data"), Address: engine.Free(t, engine.OwnHost())}
	require.NoError(t, os.Mkdir(s.dir, 0o700))
	own(t, s.dir)
	host, port, err := net.SplitHostPort(s.Address)
	require.NoError(t, err)
	s.args = []string{"-D", s.dir, "-h", host, "-p", port, "-k", ""}
	s.set(map[string]string{"max_connections": "300", "fsync": "off", "shared_buffers": "32MB", "log_min_messages": "fatal", "restart_after_crash": "on"})
	return s
}

// set adds settings, sorted by name.
func (s *Server) set(settings map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s.args = append(s.args, "-c", name+"="+settings[name])
	}
}

// Set changes settings from the next start on.
func (s *Server) Set(settings map[string]string) { s.set(settings) }

// Write writes a file in the server's directory.
func (s *Server) Write(name, content string) {
	s.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s, os.WriteFile(path, []byte(content), 0o600))
	own(s, path)
}

// File returns the path of a file in the server's directory.
func (s *Server) File(name string) string { return filepath.Join(s.dir, name) }

// guarded runs a server and sends it a signal when standard input closes, so the server ends with the
// process that started it.
const guarded = `signal=$1; shift; "$@" & pid=$!; echo $pid; read -r line; kill -$signal $pid 2>/dev/null; wait $pid`

// Begin starts the server and waits until it answers.
func (s *Server) Begin() {
	s.Helper()
	s.spawn()
	s.Ready()
}

func (s *Server) spawn() {
	s.Helper()
	s.cmd = asServer("sh", slices.Concat([]string{"-c", guarded, "sh", "QUIT", filepath.Join(Installed(), "postgres")}, s.args)...)
	log, err := os.OpenFile(filepath.Join(filepath.Dir(s.dir), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(s, err)
	defer log.Close()
	s.cmd.Stderr = log
	theirs, input, err := os.Pipe()
	require.NoError(s, err)
	s.cmd.Stdin, s.input = theirs, input
	out, err := s.cmd.StdoutPipe()
	require.NoError(s, err)
	require.NoError(s, s.cmd.Start())
	_ = theirs.Close()
	s.Cleanup(s.End)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(s, err)
	s.pid, err = strconv.Atoi(strings.TrimSpace(line))
	require.NoError(s, err)
}

// Ready waits until the server answers.
func (s *Server) Ready() {
	s.Helper()
	require.Eventually(s, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		conn, err := pgconn.Connect(ctx, s.URL(""))
		if err == nil {
			_ = conn.Close(ctx)
		}
		return err == nil
	}, patience, 50*time.Millisecond, "the server does not get ready: %s", s.log())
}

func (s *Server) log() string {
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(s.dir), "log"))
	return string(text)
}

// Kill crashes the server with all its processes, and waits for their end.
func (s *Server) Kill() {
	s.Helper()
	if s.pid == 0 {
		return
	}
	processes := append([]int{s.pid}, children(s.pid)...)
	for _, pid := range processes {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.End()
	for _, pid := range processes {
		require.Eventually(s, func() bool { return syscall.Kill(pid, 0) != nil }, patience, 10*time.Millisecond)
	}
}

// End crashes the server, too, but through its guard.
func (s *Server) End() {
	if s.pid == 0 {
		return
	}
	s.pid = 0
	_ = s.input.Close()
	_ = s.cmd.Wait()
}

// Pause stops all processes of the server for a while.
func (s *Server) Pause(pause time.Duration) {
	s.Helper()
	processes := append([]int{s.pid}, children(s.pid)...)
	for _, pid := range processes {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
	time.Sleep(pause)
	for _, pid := range processes {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

// children returns the child processes of a process.
func children(of int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ") // no program name here contains ") "
		fields := strings.Fields(rest)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if parent, _ := strconv.Atoi(fields[1]); parent == of {
			pids = append(pids, pid)
		}
	}
	return pids
}

// URL returns a URL for a source or the driver. query must not set TLS parameters.
func (s *Server) URL(query string) string { return URL(s.Address, query) }

// URL returns a URL for servers at comma-separated addresses.
func URL(addresses, query string) string {
	if query != "" {
		query = "&" + query
	}
	return "postgres://" + User + "@" + addresses + "/" + DB + "?sslmode=disable" + query
}

// Connect connects to the server directly, to inspect its data.
func (s *Server) Connect() *pgconn.PgConn {
	s.Helper()
	conn, err := pgconn.Connect(context.Background(), s.URL(""))
	require.NoError(s, err)
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// SQL runs statements and returns the rows of the last one.
func (s *Server) SQL(text string) (rows [][]string) {
	s.Helper()
	rows, err := Query(s.URL(""), text)
	require.NoError(s, err)
	return rows
}

// Query runs statements at a URL and returns the rows of the last one.
func Query(url, text string) (rows [][]string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgconn.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	return ask(ctx, conn, text)
}

func ask(ctx context.Context, conn *pgconn.PgConn, text string) (rows [][]string, err error) {
	results, err := conn.Exec(ctx, text).ReadAll()
	if err != nil || len(results) == 0 {
		return nil, err
	}
	for _, values := range results[len(results)-1].Rows {
		var texts []string
		for _, value := range values {
			texts = append(texts, string(value))
		}
		rows = append(rows, texts)
	}
	return rows, nil
}

// Value returns the first column of the first row, "" if there are no rows.
func (s *Server) Value(text string) string {
	s.Helper()
	return first(s.SQL(text))
}

func first(rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	return rows[0][0]
}

// Looker returns a function like Value that reuses connections: opening one costs the server more than
// most queries.
func (s *Server) Looker() func(text string) string {
	s.Helper()
	idle := make(chan *pgconn.PgConn, 8)
	return func(text string) string {
		s.Helper()
		var conn *pgconn.PgConn
		select {
		case conn = <-idle:
		default:
			conn = s.Connect()
		}
		rows, err := ask(s.Context(), conn, text)
		require.NoError(s, err)
		select {
		case idle <- conn:
		default:
		}
		return first(rows)
	}
}

// templates holds the data directory that all servers are copied from. It is created once.
var templates struct {
	sync.Once
	dir string
	err error
}

func template(t testing.TB) string {
	t.Helper()
	require.NotEmpty(t, Installed(), "Debian's package postgresql is not installed; scripts/test installs it")
	templates.Do(func() {
		if templates.dir, templates.err = os.MkdirTemp("", "multilock-pg-template-"); templates.err != nil {
			return
		}
		own(t, templates.dir)
		data := filepath.Join(templates.dir, "data")
		out, err := asServer(filepath.Join(Installed(), "initdb"), "-D", data, "-A", "trust", "-U", User, "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput()
		if err == nil {
			err = os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(trusting), 0o600)
			own(t, filepath.Join(data, "pg_hba.conf"))
		}
		if err == nil {
			single := asServer(filepath.Join(Installed(), "postgres"), "--single", "-D", data, "postgres")
			single.Stdin = strings.NewReader("CREATE DATABASE " + DB + "\n")
			out, err = single.CombinedOutput()
		}
		if templates.dir, templates.err = data, err; err != nil {
			templates.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	require.NoError(t, templates.err)
	return templates.dir
}

// RemoveTemplate cleans up after all tests of a package.
func RemoveTemplate() {
	if templates.dir != "" {
		_ = os.RemoveAll(filepath.Dir(templates.dir))
	}
}

// folder returns a directory of the test that the server's user can access.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "multilock-pg-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own(t, dir)
	return dir
}

// own gives a file to the server's user, because PostgreSQL refuses to run as root.
func own(t testing.TB, path string) {
	t.Helper()
	if uid, gid, ok := servers(); ok {
		require.NoError(t, os.Chown(path, uid, gid))
	}
}

// servers returns the user that runs servers; ok is false if that is the current user.
func servers() (uid, gid int, ok bool) {
	if os.Getuid() != 0 {
		return 0, 0, false
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, false
	}
	uid, _ = strconv.Atoi(who.Uid)
	gid, _ = strconv.Atoi(who.Gid)
	return uid, gid, true
}

// asServer prepares a command that runs as the server's user.
func asServer(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	if uid, gid, ok := servers(); ok {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}} //nolint:gosec // small
	}
	return cmd
}
