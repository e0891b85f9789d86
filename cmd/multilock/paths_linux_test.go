package main_test

import (
	"cmp"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	main "github.com/multilock/go/cmd/multilock"
	"github.com/multilock/go/cmd/multilock/internal/help"
	"github.com/multilock/go/cmd/multilock/internal/options"
)

// namedPath is a way for root to name a path in a directory that other users can write.
type namedPath struct {
	plant string   // what others put into that directory; "it" by default
	mkdir string   // a directory that they create for it
	env   []string // env and args name the path, relative to the directory
	args  []string
	with  use
}

// use is what root does with a file that other users may have created.
type use int

const (
	refuses  use = iota
	opens        // opens a base directory: links are followed, and its owner counts
	replaces     // replaces a file, or a link, by another file
	reads        // reads a file, even if other users can have changed it
	skips        // skips what needs the file
)

// namedPaths has one row, or several after a colon, for each option, argument and variable.
func namedPaths() map[string]namedPath {
	run := []string{"run", "-n", "x", "--", "true"}
	return map[string]namedPath{
		"dir":                     {args: append([]string{"-d", "it"}, run...), with: opens},
		"source":                  {args: append([]string{"--source", "file:it"}, run...), with: opens},
		"source: of cook":         {args: append([]string{"--source", "cook+file:it?period=1h"}, run...), with: opens},
		"source: etcd's CA":       {args: []string{"--source", "etcd://localhost:1/x?cafile=it", "status"}, with: reads},
		"source: etcd's key":      {args: []string{"--source", "etcd://localhost:1/x?certfile=it&keyfile=it", "status"}, with: reads},
		"source: the bucket's CA": {args: []string{"--source", "s3://bucket/x?endpoint=localhost:1&cafile=it", "status"}, with: reads},
		"source: mongo's CA":      {args: []string{"--source", "mongodb://localhost:1/x.y?tls=true&tlsCAFile=it", "status"}, with: reads},
		"source: mongo's key":     {args: []string{"--source", "mongodb://localhost:1/x.y?tls=true&tlsCertificateKeyFile=it", "status"}, with: reads},
		"source: postgres's CA":   {args: []string{"--source", "postgres://u@localhost:1/x?sslmode=verify-full&sslrootcert=it", "status"}, with: reads},
		"source: postgres's key":  {args: []string{"--source", "postgres://u@localhost:1/x?sslmode=require&sslcert=it&sslkey=it", "status"}, with: reads},
		"source: cloudshell's CA": {args: []string{"--source", "cloudshell://localhost:1/r?cafile=it", "status"}, with: reads},
		"MULTILOCK_DIR":           {env: []string{"MULTILOCK_DIR=it"}, args: run, with: opens},
		"MULTILOCK_CONFIG":        {env: []string{"MULTILOCK_CONFIG=it"}, args: run},
		"MULTILOCK_PASSWORD_FILE": {
			env:  []string{"MULTILOCK_PASSWORD_FILE=it", "MULTILOCK_SOURCE=postgres://user@localhost:1/x"},
			args: []string{"status"}, with: reads,
		},
		"run log":                 {args: []string{"run", "-n", "x", "--log", "it", "--", "echo", "text"}},
		"run log: in a directory": {args: []string{"run", "-n", "x", "--log", "it/", "--", "echo", "text"}},
		"batch FILE":              {args: []string{"batch", "it"}},
		"batch arg-file":          {args: []string{"batch", "-a", "it", "true"}},
		"batch FILE: --null":      {args: []string{"batch", "--null", "it"}},
		"batch joblog":            {args: []string{"batch", "--joblog", "it", "-"}},
		"batch logs":              {args: []string{"batch", "--logs", "it", "-"}},
		"batch logs: a job's":     {args: []string{"batch", "--logs", ".", "-"}, plant: "a.log"},
		"batch results":           {args: []string{"batch", "--results", "it", "-"}},
		"batch results: a job's":  {args: []string{"batch", "--results", ".", "-"}, plant: "a"},
		"batch results: a file":   {args: []string{"batch", "--results", ".", "-"}, plant: "a/stdout", mkdir: "a"},
		"wait members-from":       {args: []string{"wait", "--timeout", "1s", "--members-from", "it"}},
		"report output":           {args: []string{"report", "-o", "it"}, with: replaces},
		"report output: of --all": {args: []string{"report", "--all", "-o", "it"}},
		"report logs":             {args: []string{"report", "--logs", "it"}, with: skips},
		"metrics textfile":        {args: []string{"metrics", "--textfile", "it"}, with: replaces},
	}
}

// Each option, argument and variable that takes a path has a row, which defines what it does in a directory
// that other users can write.
func TestNamedPathsAreComplete(t *testing.T) {
	t.Parallel()
	placeholder := regexp.MustCompile("FILE|DIR|PATH")
	want := map[string]bool{"source": true} // a URL, which may be that of a directory
	main.EachOption(func(command string, o *options.Option) {
		switch {
		case !placeholder.MatchString(o.Word()):
		case o.Common:
			want[o.Name] = true
		default:
			want[command+" "+o.Name] = true
		}
	})
	for command, usage := range main.Arguments() {
		for _, word := range regexp.MustCompile(`\b(FILE|DIR\w*|PATH)\b`).FindAllString(usage, -1) {
			want[command+" "+word] = true
		}
	}
	ours, _, _ := strings.Cut(help.Topic("environment"), "pass these to a job")
	for _, found := range regexp.MustCompile(`(?m)^ +(MULTILOCK_\w+) +the (?:file|directory)\b`).FindAllStringSubmatch(ours, -1) {
		want[found[1]] = true
	}
	rows := map[string]bool{}
	for row := range namedPaths() {
		name, _, _ := strings.Cut(row, ":")
		rows[name] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(rows)))
}

// theirs is a directory in which other users may prepare files for root. A group's directory is an example:
// its members may forge state, but must not determine what root runs or writes to.
type theirs struct {
	*station
	dir     string
	uid     uint32
	private string // a directory that only root may enter
	ours    string // a file in it
	list    string // root's own, for the standard input
}

// amongOthers returns the directory of mallory's group, or one that all users, and so neville, can write.
func amongOthers(t *testing.T, member bool) *theirs {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	p := &theirs{station: newStation(t), dir: forAll(t), uid: neville, private: t.TempDir(), list: filepath.Join(t.TempDir(), "list")}
	if member {
		p.uid = mallory
		require.NoError(t, os.Chown(p.dir, 0, mallory))
		require.NoError(t, os.Chmod(p.dir, 0o770|fs.ModeSetgid))
	}
	require.NoError(t, os.Chmod(p.private, 0o700)) //nolint:gosec // root's
	p.ours = filepath.Join(p.private, "shadow")
	require.NoError(t, os.WriteFile(p.ours, []byte("root's own\n"), 0o600))
	require.NoError(t, os.WriteFile(p.list, []byte("a\techo text\n"), 0o600))
	return p
}

// do runs a script as the other user in the directory.
func (p *theirs) do(script string, vars ...string) {
	p.t.Helper()
	cmd := exec.Command("sh", "-ec", "umask 002; "+script) //nolint:gosec // a test's own
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), append(vars, "OURS="+p.ours, "PRIVATE="+p.private)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.uid, Gid: p.uid}}
	said, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%s", said)
}

// use runs the command of a row as root.
func (p *theirs) use(row namedPath) ended {
	p.t.Helper()
	p.env = row.env
	cmd := p.command(row.args...)
	cmd.Dir = p.dir
	in, err := os.Open(p.list)
	require.NoError(p.t, err)
	defer in.Close()
	cmd.Stdin = in
	return p.finish(cmd)
}

// A path that root names does not let other users make root write to, read or run other files, or block root.
func TestNamedPathsAmongOthers(t *testing.T) {
	t.Parallel()
	for name, row := range namedPaths() {
		for plant, script := range map[string]string{
			"a link to a file":      `ln -s "$OURS" "$AT"`,
			"a link to nothing":     `ln -s "$PRIVATE/new" "$AT"`,
			"a link to a directory": `ln -s "$PRIVATE" "$AT"`,
			"a pipe":                `mkfifo "$AT"; chmod 666 "$AT"`,
			"a pipe held open":      `mkfifo "$AT"; chmod 666 "$AT"`,
			"a file":                `printf 'a\techo done\n' >"$AT"; chmod 664 "$AT"`,
		} {
			if row.with == opens && plant == "a link to a directory" {
				continue
			}
			for _, who := range []string{"member", "stranger"} {
				t.Run(name+"/"+plant+"/"+who, func(t *testing.T) {
					t.Parallel()
					p, at := amongOthers(t, who == "member"), cmp.Or(row.plant, "it")
					p.do(`mkdir -p "./$DIR"; `+script, "DIR="+row.mkdir, "AT="+at)
					path := filepath.Join(p.dir, at)
					if plant == "a pipe held open" {
						pipe, err := os.OpenFile(path, os.O_RDWR, 0)
						require.NoError(t, err)
						defer pipe.Close()
					}
					before, there, began := snapshot(t, p.private), snapshot(t, path), time.Now()
					got := p.use(row)
					said := got.stdout + got.stderr
					require.Less(t, time.Since(began), watchdog/2)
					require.Equal(t, before, snapshot(t, p.private), said)
					require.NotContains(t, said, "root's own")
					require.NotRegexp(t, `(?m)^done$`, said, "it is run")
					if row.with == replaces && !strings.HasPrefix(plant, "a pipe") {
						require.Zero(t, got.code, said)
						info, err := os.Lstat(path)
						require.NoError(t, err)
						require.True(t, info.Mode().IsRegular() && ownerOf(info) == 0, info.Mode())
						return
					}
					require.Equal(t, there, snapshot(t, path), said)
					if row.with != skips {
						require.NotZero(t, got.code, said)
						if row.with != reads || plant != "a file" { // a driver words its own error for that
							require.Regexp(t, `\bit\b|/a\b|`+at, said)
						}
					}
					if strings.HasPrefix(plant, "a link") && row.with != opens {
						require.Contains(t, said, "a link is not followed in this directory, for ")
					}
				})
			}
		}
	}
}

// A list is a program. Root runs no list below a directory that members can write, even if root owns the
// list.
func TestListsThatMembersMoved(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"a member's list": `mkdir dir; chmod 755 dir; printf 'a\techo done\n' >dir/list`,
		"root's own list": `mkdir dir; mv old dir/list`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := amongOthers(t, true)
			require.NoError(t, os.WriteFile(filepath.Join(p.dir, "old"), []byte("a\techo done\n"), 0o600))
			p.do(script)
			got := p.use(namedPath{args: []string{"batch", "dir/list"}})
			require.Equal(t, 125, got.code, got.stdout)
			require.Contains(t, got.stderr, "standard input")
			require.Zero(t, p.use(namedPath{args: []string{"batch", "-"}}).code)
		})
	}
}
