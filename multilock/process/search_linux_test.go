package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/procfs"
)

// proc fakes processes: a directory that looks like /proc.
type proc struct {
	*testing.T
	dir string
}

func newProc(t *testing.T) proc { return proc{t, t.TempDir()} }

// add fakes one process with the content of its files, by name. An unreadable file is a directory; a file
// that is not given does not exist, as if the process had ended meanwhile.
func (p proc) add(pid int, files map[string]string) {
	p.Helper()
	dir := filepath.Join(p.dir, strconv.Itoa(pid))
	require.NoError(p, os.MkdirAll(dir, 0o700))
	for name, content := range files {
		if content == unreadable {
			require.NoError(p, os.Mkdir(filepath.Join(dir, name), 0o700))
			continue
		}
		require.NoError(p, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
}

const unreadable = "unreadable"

const mark = tokenVariable + "=x"

// Fields of proc_pid_stat(5) that the search uses.
func stat(state byte, flags, threads int, start uint64) string {
	return fmt.Sprintf("7 (sh) %c 1 7 7 0 -1 %d 0 0 0 0 0 0 0 0 20 0 %d 0 %d 0 0\n", state, flags, threads, start)
}

var runs = stat('S', 0, 1, 100)

func (p proc) search() *jobSearch {
	return &jobSearch{proc: procfs.Dir(p.dir), mark: JobMark{Token: "x"}, since: 50, strangers: map[int]uint64{}}
}

type sight struct {
	Life     Life // -1: nothing was seen
	Why      string
	Missed   bool
	Stranger bool
}

const nothing Life = -1

func (p proc) look(s *jobSearch, pid int) sight {
	var one searchPass
	s.look(pid, &one)
	_, stranger := s.strangers[pid]
	got := sight{Life: nothing, Missed: one.missed, Stranger: stranger}
	if one.seen != nil {
		got.Life, got.Why = one.seen.Life, one.seen.Why
	}
	return got
}

func TestWhatASearchSeesOfOneProcess(t *testing.T) {
	const doubt = "process 7 (sh), which may not be looked into, may belong to its job"
	for name, c := range map[string]struct {
		files map[string]string
		want  sight
	}{
		"ended before its turn":          {nil, sight{Life: nothing, Missed: true}},
		"hidden":                         {map[string]string{"stat": unreadable}, sight{Life: Unknown, Why: "process 7 (name unknown), which may not be looked into, may belong to its job"}},
		"the kernel's":                   {map[string]string{"stat": stat('S', 0x200000, 1, 100), "environ": "", "cmdline": ""}, sight{Life: nothing}},
		"older than the holder":          {map[string]string{"stat": stat('S', 0, 1, 49), "environ": mark}, sight{Life: nothing}},
		"as old as the holder":           {map[string]string{"stat": stat('S', 0, 1, 50), "environ": mark}, sight{Life: Alive, Why: "process 7 (sh) carries the lock's token"}},
		"of the job":                     {map[string]string{"stat": runs, "environ": "A=1\x00" + mark + "\x00"}, sight{Life: Alive, Why: "process 7 (sh) carries the lock's token"}},
		"a stranger":                     {map[string]string{"stat": runs, "environ": "A=1\x00"}, sight{Life: nothing, Stranger: true}},
		"a stranger without arguments":   {map[string]string{"stat": runs, "environ": "A=1\x00", "cmdline": ""}, sight{Life: nothing, Stranger: true}},
		"a stranger without environment": {map[string]string{"stat": runs, "environ": "", "cmdline": "sh"}, sight{Life: nothing, Stranger: true}},
		"about to execute a program":     {map[string]string{"stat": runs, "environ": "", "cmdline": ""}, sight{Life: nothing, Missed: true}},
		"ended after its stat was read":  {map[string]string{"stat": runs}, sight{Life: nothing, Missed: true}},
		"ended after its environ":        {map[string]string{"stat": runs, "environ": ""}, sight{Life: nothing, Missed: true}},
		"of another user":                {map[string]string{"stat": runs, "environ": unreadable}, sight{Life: Unknown, Why: doubt}},
		"a zombie":                       {map[string]string{"stat": stat('Z', 0, 1, 100), "environ": mark}, sight{Life: nothing, Missed: true, Stranger: true}},
		"with other threads":             {map[string]string{"stat": stat('Z', 0, 2, 100), "environ": mark}, sight{Life: Alive, Why: "process 7 (sh) carries the lock's token"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProc(t)
			p.add(7, c.files)
			require.Equal(t, c.want, p.look(p.search(), 7))
		})
	}
}

// A process that was seen before, and does not belong to the job, has started none of it. The number alone
// does not prove that it is the same process, if its start time is visible.
func TestStrangersAreNotMissed(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		start uint64
		want  bool
	}{
		"ended":                             {nil, 1, false},
		"a zombie":                          {map[string]string{"stat": stat('Z', 0, 1, 100)}, 100, false},
		"another one of that number":        {map[string]string{"stat": stat('Z', 0, 1, 100)}, 99, true},
		"ended now":                         {map[string]string{"stat": runs}, 100, false},
		"another one, ended now":            {map[string]string{"stat": runs}, 99, true},
		"executes":                          {map[string]string{"stat": runs, "environ": ""}, 100, false},
		"another one of that number, which": {map[string]string{"stat": runs, "environ": ""}, 101, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProc(t)
			p.add(7, c.files)
			s := p.search()
			s.strangers[7] = c.start
			require.Equal(t, c.want, p.look(s, 7).Missed)
			missed := searchPass{missed: true}
			s.look(7, &missed)
			require.True(t, missed.missed, "another one still is")
		})
	}
}

func TestPassGoesOverAll(t *testing.T) {
	stranger, doubtful := map[string]string{"stat": runs, "environ": "A=1"}, map[string]string{"stat": runs, "environ": unreadable}
	marked := map[string]string{"stat": runs, "environ": mark}
	p := newProc(t)
	p.add(8, stranger)
	seen, err := p.search().pass()
	require.NoError(t, err)
	require.Equal(t, searchPass{}, seen)
	p.add(9, doubtful)
	seen, err = p.search().pass()
	require.NoError(t, err)
	require.Equal(t, Unknown, seen.seen.Life)
	p.add(7, marked) // after the doubtful one
	p.add(5, doubtful)
	seen, err = p.search().pass()
	require.NoError(t, err)
	require.Equal(t, Alive, seen.seen.Life, "what is sure goes before a doubt")
}

func TestPassWithoutProc(t *testing.T) {
	_, err := (&jobSearch{proc: "/none"}).pass()
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestUnknownAndNewestComeFirst(t *testing.T) {
	s := jobSearch{strangers: map[int]uint64{4: 0, 9: 1, 2: 1}}
	pids := []int{2, 5, 9, 3, 7, 4}
	slices.SortFunc(pids, s.newestFirst)
	require.Equal(t, []int{7, 5, 3, 9, 4, 2}, pids)
	slices.Reverse(pids)
	slices.SortFunc(pids, s.newestFirst)
	require.Equal(t, []int{7, 5, 3, 9, 4, 2}, pids)
}

// settleWith settles with the results of consecutive passes; the last one repeats.
func settleWith(passes ...searchPass) (found Evidence, took int) {
	return settle(func() (searchPass, error) {
		took++
		return passes[min(took, len(passes))-1], nil
	}, 0), took
}

func TestSearchSettles(t *testing.T) {
	quiet, missed := searchPass{}, searchPass{missed: true}
	doubt, life := evidence(Unknown, "a doubt"), evidence(Alive, "a life")
	for name, c := range map[string]struct {
		passes []searchPass
		life   Life
		took   int
	}{
		"nobody is missed":         {[]searchPass{quiet}, Gone, 2},
		"one is missed, then none": {[]searchPass{missed, quiet}, Gone, 3},
		"one is missed in between": {[]searchPass{quiet, missed, quiet}, Gone, 4},
		"one is missed each time":  {[]searchPass{missed}, Unknown, leastSearch},
		"one lives":                {[]searchPass{quiet, {seen: &life}}, Alive, 2},
		"one may be of the job":    {[]searchPass{quiet, {seen: &doubt, missed: true}}, Unknown, 2},
	} {
		found, took := settleWith(c.passes...)
		require.Equal(t, c.life, found.Life, name)
		require.Equal(t, c.took, took, name)
	}
	found, _ := settleWith(searchPass{missed: true})
	require.Equal(t, "processes start and end faster than one can look for its job", found.Why)
	found, _ = settleWith(searchPass{seen: &doubt})
	require.Equal(t, doubt, found)
}

func TestSearchThatFails(t *testing.T) {
	found := settle(func() (searchPass, error) { return searchPass{}, errors.New("broken") }, time.Hour)
	require.Equal(t, evidence(Unknown, "/proc cannot be listed, to look for its job: broken"), found)
}

// As long as there is time the search continues.
func TestSearchIsPatient(t *testing.T) {
	took := 0
	found := settle(func() (searchPass, error) {
		took++
		return searchPass{missed: took < 3*leastSearch}, nil
	}, time.Hour)
	require.Equal(t, Gone, found.Life)
}
