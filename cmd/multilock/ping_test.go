//go:build unix

package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// watcher is a server that records its pings.
type watcher struct {
	*httptest.Server

	mu    sync.Mutex
	pings []pinged
	fail  int // number of requests that fail
}

type pinged struct{ path, run, body string }

func newWatcher(t *testing.T) *watcher {
	t.Helper()
	w := &watcher{}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *watcher) ServeHTTP(out http.ResponseWriter, in *http.Request) {
	body, _ := io.ReadAll(in.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fail > 0 {
		w.fail--
		out.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.pings = append(w.pings, pinged{in.URL.Path, in.URL.Query().Get("rid"), string(body)})
}

func (w *watcher) failNext(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = n
}

func (w *watcher) paths() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []string{}
	for _, p := range w.pings {
		all = append(all, p.path)
	}
	return all
}

// eventuallyStarted returns when the server has received the start: the job's end does not wait for that.
func (w *watcher) eventuallyStarted(s *station) {
	s.t.Helper()
	s.eventually("the start is told", func() bool { return len(w.paths()) == 1 })
}

func TestPing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		options []string
		script  string
		path    string
		body    string
	}{
		"success":     {nil, "cat", "/secret", "\n"},
		"failure":     {nil, "cat; exit 3", "/secret/3", ": the job ended with code 3\n"},
		"with output": {[]string{"--quiet-success"}, "cat; echo so long; exit 3", "/secret/3", ": the job ended with code 3\nso long\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, w := newStation(t), newWatcher(t)
			r := s.start(append(append([]string{"run", "--ping", w.URL + "/secret"}, c.options...), "--", "sh", "-c", c.script)...)
			w.eventuallyStarted(s)
			r.end()
			require.Equal(t, []string{"/secret/start", c.path}, w.paths())
			require.NotEmpty(t, w.pings[0].run)
			require.Equal(t, w.pings[0].run, w.pings[1].run)
			require.True(t, strings.HasSuffix(w.pings[1].body, c.body), "%q", w.pings[1].body)
		})
	}
}

// An exit code of multilock is not reported as the job's.
func TestPingOfAnotherFailure(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWatcher(t)
	require.Equal(t, 124, s.run("run", "--ping", w.URL+"/x?a=b", "--max-runtime", "100ms", "--", "sleep", "1000").code)
	all := w.paths()
	require.Equal(t, "/x/fail", all[len(all)-1])
	require.Contains(t, w.pings[len(all)-1].body, ": the job ran for longer than --max-runtime")
}

// A process that does not run the job does not ping. A failure before the job starts does.
func TestPingOfNothing(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWatcher(t)
	holder := s.hold("lock")
	require.Equal(t, 121, s.run("run", "--ping", w.URL, "--", "true").code)
	require.Empty(t, w.paths())
	require.Equal(t, 120, s.run("run", "--ping", w.URL, "--fail-after", "1", "--", "true").code)
	require.Equal(t, []string{"/fail"}, w.paths())
	holder.end()
	require.Equal(t, 127, s.run("run", "--ping", w.URL, "--", "/nonexistent/command").code)
	require.Equal(t, []string{"/fail", "/fail"}, w.paths(), "what was never started did not begin")
}

// A server that is temporarily unreachable is tried again.
func TestPingIsRepeated(t *testing.T) {
	t.Parallel()
	s, w := newStation(t), newWatcher(t)
	w.failNext(2)
	require.Equal(t, ended{0, "", ""}, s.run("run", "--ping", w.URL+"/x", "--", "true"))
	all := w.paths()
	require.Equal(t, "/x", all[len(all)-1])
}

// The lock is free before an unresponsive server is given up, and the URL is not shown.
func TestPingThatFails(t *testing.T) {
	t.Parallel()
	s, hang := newStation(t), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(hang) })
	s.env = []string{"MULTILOCK_PING=" + server.URL + "/secret"}

	r := s.start("run", "-n", "x", "--ping-timeout", "1h", "--", "sh", "-c", "echo [$MULTILOCK_PING]; exit 4")
	s.eventually("the run was told of", func() bool { return len(s.history("x")) > 1 })
	s.eventuallyFree("x")
	r.Signal(syscall.SIGTERM)
	got := r.wait()
	require.Equal(t, 4, got.code)
	require.Equal(t, "[]\n", got.stdout)
	require.Contains(t, got.stderr, "multilock: warning: --ping: "+server.URL+"/...: ")

	bounded := s.run("run", "--ping-timeout", "100ms", "--", "true")
	require.Equal(t, ended{0, "", "multilock: warning: --ping: " + server.URL + "/...: given up after 100ms, the limit of --ping-timeout\n"}, bounded)
	s.env = nil
	refused := s.run("run", "--ping", strings.Replace(server.URL, "http:", "https:", 1)+"/secret", "--ping-timeout", "2s", "--", "true")
	require.Zero(t, refused.code)
	require.Contains(t, refused.stderr, "warning: --ping: https://")
	require.NotContains(t, refused.stderr, "secret")
	wrong := s.run("run", "--ping", "secret", "--", "true")
	require.Equal(t, 125, wrong.code)
	require.NotContains(t, wrong.stderr, "secret")
}

// A permanent error is reported immediately, with the server's own message.
func TestPingThatIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	got := newStation(t).run("run", "--ping", server.URL+"/secret", "--ping-timeout", "1h", "--", "true")
	require.Equal(t, ended{0, "", "multilock: warning: --ping: " + server.URL + "/...: the server answered 404 Not Found\n"}, got)
}

// A redirect to the same host is followed. Another host receives nothing: neither the output nor the secret
// URL.
func TestPingStaysWithItsHost(t *testing.T) {
	t.Parallel()
	s, w, elsewhere := newStation(t), newWatcher(t), newWatcher(t)
	hop := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		switch {
		case strings.HasPrefix(in.URL.Path, "/away"):
			http.Redirect(out, in, elsewhere.URL+"/x", http.StatusTemporaryRedirect)
		case strings.HasPrefix(in.URL.Path, "/here"):
			http.Redirect(out, in, "/there", http.StatusTemporaryRedirect)
		default:
			if in.Header.Get("Referer") != "" {
				t.Error("a referrer tells the address")
			}
			w.ServeHTTP(out, in)
		}
	}))
	t.Cleanup(hop.Close)
	got := s.run("run", "--ping", hop.URL+"/away/secret", "--", "true")
	require.Zero(t, got.code)
	require.Contains(t, got.stderr, "redirects to another host")
	require.NotContains(t, got.stderr, "secret")
	require.Empty(t, elsewhere.paths())
	require.Equal(t, ended{0, "", ""}, s.run("run", "--ping", hop.URL+"/here", "--", "true"))
	require.Contains(t, w.paths(), "/there")
}
