package conform_test

import (
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/internal/simnfs/conform"
	"github.com/multilock/go/multilock/vfs"
)

// moment is longer than the tick of a kernel's clock.
const moment = 10 * time.Millisecond

// A local file system is one kernel, whose cache is always right.
func TestLocalFilesystemAnswersAsSimulated(t *testing.T) {
	root, err := vfs.OS{}.OpenDir(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	var together sync.WaitGroup
	for seed := range uint64(500) {
		together.Go(func() {
			if err := compare(root, seed); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
	together.Wait()
}

func compare(root vfs.Dir, seed uint64) error {
	name := strconv.FormatUint(seed, 10)
	if err := root.Mkdir(name, 0o777); err != nil {
		return err
	}
	var players []*conform.Player
	for range 2 {
		dir, err := vfs.OS{}.OpenDir(filepath.Join(root.Path(), name))
		if err != nil {
			return err
		}
		players = append(players, conform.NewPlayer(dir))
	}
	program := conform.Draw(seed, 2, 20)
	answers := conform.Play(program, players, func() { time.Sleep(moment) })
	_, err := conform.Explain(program, answers, []simnfs.Options{{Local: true}, {Local: true}})
	return err
}

var remembers = simnfs.Options{MinAge: time.Hour, MaxAge: time.Hour}

// mounts returns n equal mount options.
func mounts(n int, options simnfs.Options) []simnfs.Options {
	return slices.Repeat([]simnfs.Options{options}, n)
}

// Simulated clients that drop cached data now and then are explained by clients that may.
func TestWhatIsForgottenIsFound(t *testing.T) {
	forgot := 0
	for seed := range uint64(300) {
		program, asked := conform.Draw(seed, 3, 20), 0
		forgetful := remembers
		forgetful.Forgot = func() bool { asked++; return asked%3 == 0 }
		players, tick := conform.Simulated(mounts(3, forgetful))
		found, err := conform.Explain(program, conform.Play(program, players, tick), mounts(3, remembers))
		require.NoError(t, err, "seed %d", seed)
		forgot += found.Forgot
	}
	require.Positive(t, forgot)
}

// stale makes a client find that x is absent, another one create it, and the first look again.
func stale(do string) []conform.Step {
	return []conform.Step{{Client: 0, Do: "statname", Name: "x"}, {Client: 1, Do: "mkdir", Name: "x"}, {Client: 0, Do: do, Name: "x"}}
}

// Impossible answers are rejected, with the step.
func TestWrongAnswersAreRefused(t *testing.T) {
	for do, refused := range map[string]string{"mkdir": "", "statname": "not a directory", "rmdir": "file exists"} {
		players, tick := conform.Simulated(mounts(2, remembers))
		answers := conform.Play(stale(do), players, tick)
		_, err := conform.Explain(stale(do), answers, mounts(2, remembers))
		require.NoError(t, err)
		answers[2] = conform.Answer{Error: refused}
		_, err = conform.Explain(stale(do), answers, mounts(2, remembers))
		require.ErrorContains(t, err, "step 2", do)
	}
}

// A name that is absent for a client may exist: it may have dropped its cache.
func TestBothAnswersAreAllowed(t *testing.T) {
	for _, allowed := range []string{"", syscall.ENOENT.Error()} {
		players, tick := conform.Simulated(mounts(2, remembers))
		answers := conform.Play(stale("rmdir"), players, tick)
		answers[2] = conform.Answer{Error: allowed}
		_, err := conform.Explain(stale("rmdir"), answers, mounts(2, remembers))
		require.NoError(t, err)
	}
}

// Numbers of files and times are also compared.
func TestWrongFilesAndTimesAreRefused(t *testing.T) {
	program := []conform.Step{
		{Do: "mkdir", Name: "x"}, {Do: "statname", Name: "x"}, {Do: "mkdir", Name: "y"}, {Do: "statname", Name: "x"}, {Do: "handle", Name: "x"}, {Do: "handle", Name: "y"},
	}
	for _, spoil := range []func(a []conform.Answer){
		func(a []conform.Answer) { a[3].Inode++ },
		func(a []conform.Answer) { a[3].Modified = a[3].Modified.Add(time.Second) },
		func(a []conform.Answer) { a[5].Handle = a[4].Handle },
	} {
		players, tick := conform.Simulated(mounts(1, remembers))
		answers := conform.Play(program, players, tick)
		spoil(answers)
		_, err := conform.Explain(program, answers, mounts(1, remembers))
		require.Error(t, err)
	}
}
