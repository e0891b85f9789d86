package main_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/clitest"
)

var (
	longAdversary = flag.Bool("long", false, "adversary: a minute instead of 8 seconds")
	adversarySeed = flag.Uint64("adversary-seed", 0, "adversary: the seed of a run to do again (default: drawn)")
)

// Mallory makes random changes to all that he can reach in the base directory, while root's commands run.
// Nothing outside of the base changes, nothing hangs, and failures are reported with their cause. If the base
// was closed before root came, no job runs twice at the same time. If root trusts anybody, mallory may forge
// lock holders and results.
func TestAdversary(t *testing.T) {
	t.Parallel()
	for setting, open := range map[string]bool{"closed": false, "open": true} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			seed := *adversarySeed
			if seed == 0 {
				seed = rand.Uint64() //nolint:gosec // a test
			}
			t.Logf("-adversary-seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test
			span := 8 * time.Second
			if *longAdversary {
				span = time.Minute
			}
			episodes := 0
			for end := time.Now().Add(span); time.Now().Before(end) && !t.Failed(); {
				episode(t, rng, open)
				episodes++
			}
			t.Log(episodes, "episodes")
		})
	}
}

// episode is one base directory, while it is usable.
func episode(t *testing.T, rng *rand.Rand, open bool) {
	t.Helper()
	c := newCommons(t, open)
	r := &root{commons: c, rng: rng, witness: filepath.Join(t.TempDir(), "witness")}
	r.list = c.list("a\t"+r.job(), "b\t"+r.job())
	holder := r.settle()
	m := &adversary{base: c.base, outside: c.outside, rng: rand.New(rand.NewPCG(rng.Uint64(), 1))} //nolint:gosec // a test
	require.NoError(t, asMallory(func() {
		for range rng.IntN(60) {
			m.act()
		}
	}))
	c.close()
	over := c.meanwhile(func() { m.act(); time.Sleep(time.Duration(m.rng.Int64N(int64(2 * time.Millisecond)))) })
	defer over()
	for range 3 {
		r.turn()
	}
	r.judge("the end of a job", holder.end())
}

// root is the user of the base directory.
type root struct {
	*commons
	rng     *rand.Rand
	witness string
	list    string
}

// slow is longer than any command of a passing test takes: a slower command prints what it waits for.
const slow = watchdog * 2 / 3

// hurry ends a slow command. The binary, which timeout(1) may have started, prints its goroutines on the
// standard error, for judge.
func hurry(shell *os.Process) {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", shell.Pid))
	for _, pid := range strings.Fields(string(children)) {
		child, _ := strconv.Atoi(pid)
		_ = unix.Kill(child, unix.SIGABRT)
	}
	_ = shell.Signal(unix.SIGABRT)
}

// job returns a job that reports if it does not run alone.
func (r *root) job() string {
	return fmt.Sprintf(`flock -n %[1]s-"$MULTILOCK_NAME" sleep 0.02 || echo "$MULTILOCK_NAME" >> %[1]s.twice`, r.witness)
}

// settle uses the base as intended, and makes links to files outside of it in place of mallory: where hard
// links are protected, mallory cannot make them. It leaves a lock held.
func (r *root) settle() *running {
	r.t.Helper()
	r.must("run", "-n", "x", "--once", "--", "true")
	holder := r.hold("held")
	pool := filepath.Join(r.base, "pool")
	require.NoError(r.t, os.Mkdir(pool, 0o700))
	for n, file := range []string{"shadow", "etc/list", "etc/x.locked"} {
		require.NoError(r.t, os.Link(filepath.Join(r.outside, file), filepath.Join(pool, fmt.Sprint("link", n))))
	}
	r.chmodAll(0o777)
	return holder
}

// lines returns root's commands. Those that may wait for a lock have a timeout.
func (r *root) lines() []string {
	job := " -- sh -c '" + r.job() + "'"
	lines := []string{
		"run -n x" + job, "run -n y --once" + job, "run -n x --every 1h" + job, "run -n y --fail-after 9 -- true", "run -n y --slots 2 -- true",
		"run -n x --wait 1s" + job, "acquire -n y --detach --ttl 1m", "release -n y --token \"$(cat " + r.witness + ".token)\"", "batch -q -j2 " + r.list,
		"batch --logs logs --joblog jobs " + r.list, "status x held", "status --results", "history", "logs a", "logs", "logs --joblog", "report -o page.html",
		"wait --timeout 500ms --settle 10ms", "wait --timeout 500ms --members x", "clean", "clean --results", "doctor", "break x", "break y",
	}
	for i, line := range lines {
		lines[i] = "exec multilock " + line
		switch command, _, _ := strings.Cut(line, " "); command {
		case "batch", "clean", "break":
			lines[i] = "exec timeout -k 30 3 multilock " + line
		case "acquire":
			lines[i] += " > " + r.witness + ".token"
		}
	}
	return lines
}

// turn runs several commands at a time.
func (r *root) turn() {
	r.t.Helper()
	lines, running := r.lines(), map[string]*running{}
	for range 4 {
		line := lines[r.rng.IntN(len(lines))]
		if running[line] != nil {
			continue
		}
		umask := []string{"000", "002", "022", "077"}[r.rng.IntN(4)]
		cmd := clitest.Shell(r.t, r.command(), "sh", "umask "+umask+"; "+line)
		running[line] = begin(r.t, cmd)
		defer time.AfterFunc(slow, func() { hurry(cmd.Process) }).Stop()
	}
	for line, each := range running {
		r.judge(line, each.end())
	}
	r.unharmed()
	if !r.open {
		require.NoFileExists(r.t, r.witness+".twice", "two holders at a time")
	}
}

// judge requires that a failed command has reported why.
func (r *root) judge(line string, got ended) {
	r.t.Helper()
	require.NotRegexp(r.t, `panic:|fatal error|goroutine \d`, got.stderr, line)
	if got.code == 0 || strings.Contains(line, "timeout") && got.code == 124 {
		return // it may wait for a lock that mallory keeps held
	}
	if strings.Contains(line, "status") && got.code == 121 {
		return // that is its result
	}
	if !strings.Contains(line, "doctor") { // its report is on the standard output
		require.NotEmpty(r.t, got.stderr, "%s ended with %d\n%s", line, got.code, got.stdout)
	}
	require.Regexp(r.t, `[/"]|user|uid|lock |--token`, got.stderr+got.stdout, "%s ended with %d", line, got.code)
}

// adversary is mallory.
type adversary struct {
	base, outside string
	rng           *rand.Rand
}

// act makes one change. Most are not permitted, or come too late.
func (m *adversary) act() {
	at := m.somewhere()
	switch m.rng.IntN(10) {
	case 0:
	case 1:
		at = filepath.Join(filepath.Dir(at), m.name())
	default:
		at = m.target()
	}
	deeds := []func(string){
		m.link, m.link, m.link, m.link, m.pipe, m.pipe, m.truncate, m.truncate, m.hardLink, m.hardLink,
		m.rename, m.swap, m.socket, m.file, m.forge, m.chmod, m.deep, m.remove, m.age, m.directory,
	}
	deeds[m.rng.IntN(len(deeds))](at)
}

// somewhere returns a path in the base directory. It does not follow links, because mallory would leave the
// base himself.
func (m *adversary) somewhere() string {
	at := m.base
	for range 6 {
		entries, err := os.ReadDir(at)
		if err != nil || len(entries) == 0 {
			break
		}
		entry := entries[m.rng.IntN(len(entries))]
		at = filepath.Join(at, entry.Name())
		if !entry.IsDir() || m.rng.IntN(5) == 0 {
			break
		}
	}
	return at
}

// target returns what root will write or read next.
func (m *adversary) target() string {
	targets := []string{
		".locks/x", ".locks/y", ".locks/x/x.locked", ".locks/held/held.job", ".multilock/staging/*",
		"fence/x", "fence/y", "fence/a", "done/x", "done/y", "done/*", "done/#jobs-1-1", "history/*", "logs/*", "logs/a.out", "manifest", "manifest/list", "manifest/board",
	}
	at := targets[m.rng.IntN(len(targets))]
	if !strings.HasPrefix(at, ".") {
		at = filepath.Join(".multilock", "groups", ".locks", at)
	}
	at = filepath.Join(m.base, at)
	if found, _ := filepath.Glob(at); len(found) > 0 {
		at = found[m.rng.IntN(len(found))]
	}
	return at
}

// name returns a name with a meaning.
func (m *adversary) name() string {
	return filepath.Base(strings.TrimSuffix(m.target(), "*"))
}

func (m *adversary) link(at string) {
	targets := []string{
		m.outside, m.outside + "/etc", m.outside + "/etc/x", m.outside + "/shadow", m.outside + "/etc/list", m.outside + "/new", m.outside + "/etc/new",
		m.outside + "/shadow", m.outside + "/etc", "..", m.name(), m.somewhere(), "/dev/zero",
	}
	m.away(at)
	_ = os.Symlink(targets[m.rng.IntN(len(targets))], at)
}

// away renames an entry.
func (m *adversary) away(at string) { _ = os.Rename(at, fmt.Sprint(at, "-", m.rng.IntN(10))) }

func (m *adversary) rename(at string) {
	to := filepath.Join(filepath.Dir(m.somewhere()), m.name())
	m.away(to)
	_ = os.Rename(at, to)
}

func (m *adversary) swap(at string) {
	_ = unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, m.somewhere(), unix.RENAME_EXCHANGE)
}

func (m *adversary) pipe(at string) {
	m.away(at)
	_ = unix.Mkfifo(at, 0o666)
}

func (m *adversary) socket(at string) {
	m.away(at)
	_ = unix.Mknod(at, unix.S_IFSOCK|0o666, 0)
}

func (m *adversary) directory(at string) {
	m.away(at)
	_ = os.Mkdir(at, 0o777) //nolint:gosec // for a stranger's sake
}

func (m *adversary) file(at string) {
	noise := make([]byte, m.rng.IntN(2000))
	for i := range noise {
		noise[i] = byte(m.rng.Uint32())
	}
	m.write(at, noise)
}

// forge changes one or two bytes of a file that root has written.
func (m *adversary) forge(at string) {
	from := m.somewhere()
	if info, err := os.Lstat(from); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return
	}
	content, err := os.ReadFile(from) //nolint:gosec // where mallory is
	if err != nil {
		return
	}
	for range min(m.rng.IntN(3), len(content)) {
		content[m.rng.IntN(len(content))] = byte(m.rng.Uint32())
	}
	m.write(at, content)
}

func (m *adversary) write(at string, content []byte) {
	m.away(at)
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // for a stranger's sake
	if err == nil {
		_, _ = f.Write(content)
		_ = f.Close()
	}
}

func (m *adversary) truncate(at string) {
	sizes := []int64{0, 1, 100, 1 << 20, 10 << 30, 1 << 40, 15 << 40}
	if m.rng.IntN(2) == 0 {
		m.write(at, nil)
	}
	if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
		_ = os.Truncate(at, sizes[m.rng.IntN(len(sizes))])
	}
}

func (m *adversary) chmod(at string) {
	modes := []uint32{0, 0o444, 0o600, 0o666, 0o777, 0o1777, 0o2775, 0o4777}
	_ = unix.Chmod(at, modes[m.rng.IntN(len(modes))])
}

func (m *adversary) deep(at string) {
	m.away(at)
	_ = deepTree(at, m.rng.IntN(600))
}

func (m *adversary) remove(at string) { _ = os.Remove(at) }

// age makes an entry old enough to be removed by clean.
func (m *adversary) age(at string) {
	then := time.Now().Add(-time.Duration(m.rng.Int64N(int64(96 * time.Hour))))
	_ = os.Chtimes(at, then, then)
}

func (m *adversary) hardLink(at string) {
	m.away(at)
	_ = os.Link(m.somewhere(), at)
}
