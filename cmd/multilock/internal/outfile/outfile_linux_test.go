package outfile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/outfile"
)

const stranger = 4711

// open is a directory that every user can write to.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	return dir
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func requireContent(t *testing.T, want, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(content))
}

func add(path string) error {
	f, err := outfile.Append(path)
	if err != nil {
		return err
	}
	_, err = f.WriteString("added\n")
	if err == nil {
		err = f.Close()
	}
	return err
}

// giveAway makes an untrusted user the owner.
func giveAway(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("it takes root to give files away")
	}
	require.NoError(t, os.Lchown(path, stranger, stranger))
}

// Entries of untrusted users in a shared directory neither lead out of it nor receive data.
func TestStrangersFiles(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(t *testing.T, path, precious string)
		want string
	}{
		"a link": {func(t *testing.T, path, precious string) {
			require.NoError(t, os.Symlink(precious, path))
		}, "a link is not followed in this directory, for all users can write to it; name the file that it leads to"},
		"a hard link": {func(t *testing.T, path, precious string) {
			require.NoError(t, os.Link(precious, path))
		}, "it has another name elsewhere"},
		"a file of theirs": {func(t *testing.T, path, _ string) {
			giveAway(t, write(t, path, "theirs"))
		}, "it belongs to uid 4711, which is not trusted here"},
		"a pipe": {func(t *testing.T, path, _ string) {
			require.NoError(t, syscall.Mkfifo(path, 0o666))
			giveAway(t, path)
		}, "no process reads from this pipe, and multilock does not wait for one: all users can write to it"},
		"a pipe that they read": {func(t *testing.T, path, _ string) {
			require.NoError(t, syscall.Mkfifo(path, 0o666))
			reader, err := os.OpenFile(path, os.O_RDWR, 0)
			require.NoError(t, err)
			t.Cleanup(func() { _ = reader.Close() })
			giveAway(t, path)
		}, "it belongs to uid 4711, which is not trusted here"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, precious := open(t), write(t, filepath.Join(t.TempDir(), "shadow"), "precious")
			path := filepath.Join(dir, "log")
			c.put(t, path, precious)
			require.ErrorContains(t, add(path), c.want)
			logs, err := outfile.OpenDir(dir)
			require.NoError(t, err)
			defer logs.Close()
			_, err = logs.Append("log")
			require.ErrorContains(t, err, c.want)
			requireContent(t, "precious", precious)
		})
	}
}

// Replace replaces an untrusted user's file or link, and does not write to anything else.
func TestReplaceAmongStrangers(t *testing.T) {
	dir, precious := open(t), write(t, filepath.Join(t.TempDir(), "shadow"), "precious")
	page := filepath.Join(dir, "page.html")
	for name, put := range map[string]func() error{
		"link": func() error { return os.Symlink(precious, page) }, "hard link": func() error { return os.Link(precious, page) },
	} {
		require.NoError(t, os.RemoveAll(page))
		require.NoError(t, put(), name)
		require.NoError(t, outfile.Replace(page, []byte("page")))
		requireContent(t, "precious", precious)
		requireContent(t, "page", page)
	}
	require.NoError(t, os.Remove(page))
	require.NoError(t, syscall.Mkfifo(page, 0o666))
	require.ErrorContains(t, outfile.Replace(page, []byte("page")), "no process reads from this pipe")
	require.Len(t, entries(t, dir), 1)
}

func entries(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	return all
}

// An untrusted user's link in a path is not followed either, and no directory is created behind one.
func TestStrangersWay(t *testing.T) {
	dir, elsewhere := open(t), t.TempDir()
	for name, target := range map[string]string{"logs": elsewhere, "dangling": filepath.Join(elsewhere, "new")} {
		link := filepath.Join(dir, name)
		require.NoError(t, os.Symlink(target, link))
		const want = "a link is not followed in this directory"
		require.ErrorContains(t, add(filepath.Join(link, "file")), want)
		require.ErrorContains(t, outfile.Replace(filepath.Join(dir, "..", filepath.Base(dir), name, "file"), nil), want)
		_, err := outfile.OpenDir(link)
		require.ErrorContains(t, err, want)
		_, err = outfile.MakeDir(filepath.Join(link, "below"))
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, entries(t, elsewhere))
}

// A race does not help an untrusted user, who replaces file and directory by links during writes.
func TestStrangersRace(t *testing.T) {
	dir, elsewhere := open(t), t.TempDir()
	precious := write(t, filepath.Join(elsewhere, "log"), "precious")
	way, file := filepath.Join(dir, "way"), filepath.Join(dir, "log")
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			default:
			}
			_, _ = os.RemoveAll(way), os.Symlink(elsewhere, way)
			_, _ = os.RemoveAll(file), os.Symlink(precious, file)
			_, _ = os.Remove(way), os.Mkdir(way, 0o777) //nolint:gosec // so would a stranger
			_ = os.Remove(file)
		}
	}()
	written := 0
	for range 200 {
		for _, path := range []string{file, filepath.Join(way, "log")} {
			if add(path) == nil {
				written++
			}
			_ = outfile.Replace(path, []byte("page"))
		}
	}
	close(done)
	<-stopped
	t.Logf("%d of 400 files were added to", written)
	requireContent(t, "precious", precious)
	require.Len(t, entries(t, elsewhere), 1)
}

// A user's own file is written to in any directory.
func TestOwnFileAmongStrangers(t *testing.T) {
	file := filepath.Join(open(t), "log")
	require.NoError(t, add(file))
	require.NoError(t, add(file))
	requireContent(t, "added\nadded\n", file)
	require.NoError(t, outfile.Replace(file, []byte("page")))
	requireContent(t, "page", file)
}

// In an exclusive directory all entries are what the user meant.
func TestOwnDirectory(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	t.Chdir(dir)
	require.NoError(t, os.Symlink("target", "link"))
	require.NoError(t, os.Symlink(dir, "here"))
	require.NoError(t, os.Symlink("../../"+filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir)+"/link", "link2"))
	for _, path := range []string{"link", "./link", "here/link2", filepath.Join(dir, "link2"), "here/../" + filepath.Base(dir) + "/target"} {
		require.NoError(t, add(path), path)
		requireContent(t, "added\n", target)
		require.NoError(t, outfile.Replace(path, nil), path)
		requireContent(t, "", target)
	}
	require.NoError(t, os.Link(target, "hard"))
	require.NoError(t, add("hard"))
	requireContent(t, "added\n", target)
	giveAway(t, target)
	require.NoError(t, add("link"))
	requireContent(t, "added\nadded\n", target)
}

// A pipe that the user created blocks until a process reads from it.
func TestOwnPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, put := range []func() error{func() error { return add(pipe) }, func() error { return outfile.Replace(pipe, []byte("added\n")) }} {
		failed := make(chan error, 1)
		go func() { failed <- put() }()
		requireContent(t, "added\n", pipe)
		require.NoError(t, <-failed)
	}
}

// A pipe that an untrusted user left does not block.
func TestPipeThatAStrangerLeft(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	giveAway(t, pipe)
	for _, put := range []func() error{func() error { return add(pipe) }, func() error { return outfile.Replace(pipe, nil) }} {
		require.ErrorContains(t, put(), "multilock does not wait for one: it belongs to uid 4711")
	}
}

// An open file of any type has a path in /proc.
func TestOpenAlready(t *testing.T) {
	out, in, err := os.Pipe()
	require.NoError(t, err)
	for _, dir := range []string{"/dev/fd", "/proc/self/fd"} {
		require.NoError(t, add(fmt.Sprintf("%s/%d", dir, in.Fd())))
		require.NoError(t, outfile.Replace(fmt.Sprintf("%s/%d", dir, in.Fd()), []byte("page\n")))
	}
	require.NoError(t, in.Close())
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.Equal(t, "added\npage\nadded\npage\n", string(text))
	require.NoError(t, add(os.DevNull))
	require.NoError(t, outfile.Replace(os.DevNull, []byte("page")))
	require.ErrorIs(t, outfile.Replace("/dev/full", []byte("page")), syscall.ENOSPC)
}

// A path that leads nowhere returns an error.
func TestNoFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	write(t, filepath.Join(dir, "file"), "")
	for path, want := range map[string]error{
		"":              syscall.ENOENT,
		"/":             syscall.EISDIR,
		dir:             syscall.EISDIR,
		dir + "/":       syscall.EISDIR,
		dir + "/.":      syscall.EISDIR,
		dir + "/loop":   syscall.ELOOP,
		dir + "/no/x":   syscall.ENOENT,
		dir + "/file/x": syscall.ENOTDIR,
		dir + "/file/":  syscall.ENOTDIR,
	} {
		require.ErrorIs(t, add(path), want, path)
		require.ErrorIs(t, outfile.Replace(path, nil), want, path)
	}
}

// MakeDir creates all missing directories.
func TestMakeDir(t *testing.T) {
	base := t.TempDir()
	for range 2 {
		dir, err := outfile.MakeDir(filepath.Join(base, "a", "b"))
		require.NoError(t, err)
		f, err := dir.Append("log")
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.True(t, dir.Has("log"))
		require.False(t, dir.Has("other"))
		require.NoError(t, dir.Close())
	}
	_, err := outfile.OpenDir(filepath.Join(base, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func begin(t *testing.T, path, content string, keep int) {
	t.Helper()
	f, err := outfile.Begin(path, keep)
	require.NoError(t, err)
	_, err = f.WriteString(content)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// names returns the entries of a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestBeginKeepsTheLastFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	for i := range 5 {
		begin(t, path, fmt.Sprint(i), 3)
	}
	requireContent(t, "4", path)
	requireContent(t, "3", path+".1")
	requireContent(t, "2", path+".2")
	require.Equal(t, []string{"log", "log.1", "log.2"}, names(t, dir))

	begin(t, path, "5", 2)
	requireContent(t, "4", path+".1")
	require.Equal(t, []string{"log", "log.1"}, names(t, dir))
	begin(t, path, "6", 1)
	requireContent(t, "6", path)
	require.Equal(t, []string{"log"}, names(t, dir))
}

// A link of the user leads to the file that is moved; a device is not moved.
func TestBeginMovesFilesOnly(t *testing.T) {
	dir, real := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "log")
	require.NoError(t, os.Symlink(filepath.Join(real, "log"), path))
	begin(t, path, "1", 2)
	begin(t, path, "2", 2)
	require.Equal(t, []string{"log"}, names(t, dir))
	require.Equal(t, []string{"log", "log.1"}, names(t, real))

	null := filepath.Join(dir, "null")
	require.NoError(t, os.Symlink("/dev/null", null))
	begin(t, null, "nothing", 2)
	begin(t, null, "nothing", 2)
	info, err := os.Stat("/dev/null")
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeCharDevice)
}

// Untrusted users' files in a shared directory are neither moved, written to, nor counted.
func TestBeginAmongStrangers(t *testing.T) {
	dir := open(t)
	path := filepath.Join(dir, "log")
	begin(t, path, "mine", 3)
	begin(t, path, "mine, too", 3)
	giveAway(t, path)
	_, err := outfile.Begin(path, 3)
	require.ErrorContains(t, err, "remove it, or name a file in a directory that no other user can write to")
	requireContent(t, "mine, too", path)

	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(write(t, filepath.Join(t.TempDir(), "target"), "kept"), link))
	_, err = outfile.Begin(link, 3)
	require.ErrorContains(t, err, "a link is not followed in this directory")

	d, err := outfile.OpenDir(dir)
	require.NoError(t, err)
	defer d.Close()
	for _, name := range []string{"a.1", "a.2", "a.3", "a.4"} {
		write(t, filepath.Join(dir, name), "")
	}
	giveAway(t, filepath.Join(dir, "a.1"))
	giveAway(t, filepath.Join(dir, "a.4"))
	require.NoError(t, d.Keep(1, func(name string) bool { return name[:2] == "a." }))
	require.Equal(t, []string{"a.1", "a.3", "a.4", "link", "log", "log.1"}, names(t, dir))
	_, err = d.Make("a.3")
	require.ErrorIs(t, err, os.ErrExist)
}

func peek(path string) (string, error) {
	f, err := outfile.Peek(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// A Kubernetes volume is a directory that every user may write to, with links of root.
func TestPeekAtAVolume(t *testing.T) {
	dir := open(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2026"), 0o755)) //nolint:gosec // as it is there
	write(t, filepath.Join(dir, "..2026", "key"), "secret")
	require.NoError(t, os.Symlink("..2026", filepath.Join(dir, "..data")))
	link := filepath.Join(dir, "key")
	require.NoError(t, os.Symlink("..data/key", link))
	text, err := peek(link)
	require.NoError(t, err)
	require.Equal(t, "secret", text)
	giveAway(t, link)
	_, err = peek(link)
	require.ErrorContains(t, err, "a link is not followed in this directory, for all users can write to it")
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink("..data/key", link))
	require.NoError(t, os.Link(link, filepath.Join(dir, "hard")))
	_, err = peek(link)
	require.ErrorContains(t, err, "a link is not followed", "anybody can have put it there")
}

// A library may only read a regular file: it would wait for the other end of a pipe, and perhaps twice.
func TestCheckForALibrary(t *testing.T) {
	dir := open(t)
	path := filepath.Join(dir, "it")
	require.NoError(t, outfile.Check(path), "the library says that it is absent")
	require.NoError(t, outfile.Check(filepath.Join(dir, "none", "it")))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	require.ErrorContains(t, outfile.Check(path), path+": it is not a regular file")
	require.ErrorContains(t, outfile.Check(dir), "it is not a regular file")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(write(t, filepath.Join(t.TempDir(), "ca"), ""), path))
	require.NoError(t, outfile.Check(path), "our own link")
	giveAway(t, path)
	require.ErrorContains(t, outfile.Check(path), "a link is not followed in this directory")
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	defer in.Close()
	require.NoError(t, outfile.Check(fmt.Sprintf("/dev/fd/%d", out.Fd())), "a shell's <(command)")
}

// Reading waits for another process's data, in a pipe of the user and in an open one.
func TestPeekAtAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(pipe, []byte("secret"), 0) }()
	text, err := peek(pipe)
	require.NoError(t, err)
	require.NoError(t, <-wrote)
	require.Equal(t, "secret", text)
	out, in, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	_, err = in.WriteString("secret")
	require.NoError(t, errors.Join(err, in.Close()))
	text, err = peek(fmt.Sprintf("/dev/fd/%d", out.Fd()))
	require.NoError(t, err)
	require.Equal(t, "secret", text)
	giveAway(t, pipe)
	for _, open := range []func(string) (*os.File, error){outfile.Peek, outfile.Open} {
		_, err = open(pipe)
		require.ErrorContains(t, err, "it belongs to uid 4711")
	}
}
