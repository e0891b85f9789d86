package process_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
)

func TestSelfIsAlive(t *testing.T) {
	me := self(t)
	require.Equal(t, os.Getpid(), me.PID)
	require.NotEmpty(t, me.Host)
	require.NotEmpty(t, me.Boot)
	require.NotEmpty(t, me.Namespace)
	require.NotZero(t, me.Start)
	requireLife(t, process.Alive, me.Judge(me))
}

func TestSelfAndFindAgree(t *testing.T) {
	me := self(t)
	require.Equal(t, me, self(t))
	require.Equal(t, me, find(t, os.Getpid()))
}

func TestFindTheFirst(t *testing.T) {
	require.Equal(t, 1, find(t, 1).PID)
}

func TestFindNobody(t *testing.T) {
	for _, pid := range []int{0, -1, math.MaxInt32} {
		_, err := process.Find(pid)
		require.ErrorIs(t, err, process.ErrNotFound)
	}
}

func TestChildAliveThenGone(t *testing.T) {
	me, child := self(t), sitter(t)
	id := find(t, child.Process.Pid)
	require.NotEqual(t, me, id)
	requireLife(t, process.Alive, id.Judge(me))
	child.End()
	requireLife(t, process.Gone, id.Judge(me))
	_, err := process.Find(id.PID)
	require.ErrorIs(t, err, process.ErrNotFound)
}

func TestNumberThatIsNoProcess(t *testing.T) {
	me := self(t)
	for _, pid := range []int{0, -1, -me.PID, math.MinInt32} {
		id := me
		id.PID = pid
		requireLife(t, process.Unknown, id.Judge(me))
	}
}

func TestUnknownStartProvesExistenceOnly(t *testing.T) {
	me, child := self(t), sitter(t)
	id := find(t, child.Process.Pid)
	id.Start = 0
	requireLife(t, process.Alive, id.Judge(me))
	child.End()
	requireLife(t, process.Gone, id.Judge(me))
}

func TestPIDProvesNothingElsewhere(t *testing.T) {
	me := self(t)
	changes := map[string]func(id *process.Identity){
		"on another host (node7)":    func(id *process.Identity) { id.Host, id.Boot = "node7", "other" },
		"another boot":               func(id *process.Identity) { id.Boot = "other" },
		"boot it runs under is not":  func(id *process.Identity) { id.Boot = "" },
		"another pid namespace":      func(id *process.Identity) { id.Namespace = "pid:[1]" },
		"pid namespace is not known": func(id *process.Identity) { id.Namespace = "" },
	}
	for why, change := range changes {
		id := me
		change(&id)
		found := id.Judge(me)
		requireLife(t, process.Unknown, found)
		require.Contains(t, found.Why, why)
		requireLife(t, process.Unknown, me.Judge(id))
		requireLife(t, process.Unknown, id.JudgeJob(process.JobMark{Token: "token"}, me))
		group := process.Group{Host: id.Host, Machine: id.Machine, Boot: id.Boot, Namespace: id.Namespace, PGID: math.MaxInt32}
		found = group.Judge(me)
		requireLife(t, process.Unknown, found)
		require.Contains(t, found.Why, why)
	}
}

// Copies of a running virtual machine share its boot id and its pid namespace. So does a container with the
// pid namespace of its host and a name of its own: the two cases cannot be distinguished.
func TestOneBootInTwoPlacesProvesNothing(t *testing.T) {
	me := self(t)
	me.Machine = "00000000ba5eba11"
	changes := map[string]func(id *process.Identity){
		"on another host (copy)":        func(id *process.Identity) { id.Host = "copy" },
		"on another machine":            func(id *process.Identity) { id.Machine = "00000000feedf00d" },
		"on another host (copy of two)": func(id *process.Identity) { id.Host, id.Machine = "copy of two", "00000000feedf00d" },
	}
	for why, change := range changes {
		id, dead := me, me
		dead.Start++
		change(&id)
		change(&dead)
		for _, other := range []process.Identity{id, dead} {
			found := other.Judge(me)
			requireLife(t, process.Unknown, found)
			require.Contains(t, found.Why, why)
			requireLife(t, process.Unknown, me.Judge(other))
		}
		group := process.Group{Host: id.Host, Machine: id.Machine, Boot: id.Boot, Namespace: id.Namespace, PGID: math.MaxInt32}
		found := group.Judge(me)
		requireLife(t, process.Unknown, found)
		require.Contains(t, found.Why, why)
	}
}

// An unknown name or machine on one side differs from nothing.
func TestUnknownPlaceDiffersFromNone(t *testing.T) {
	me := self(t)
	me.Machine = "00000000ba5eba11"
	for _, change := range []func(id *process.Identity){
		func(id *process.Identity) { id.Host = "" },
		func(id *process.Identity) { id.Machine = "" },
	} {
		id := me
		change(&id)
		requireLife(t, process.Alive, id.Judge(me))
		requireLife(t, process.Alive, me.Judge(id))
	}
}

func TestNothingKnownOnEitherSide(t *testing.T) {
	me := process.Identity{Host: "a", PID: os.Getpid()}
	requireLife(t, process.Unknown, me.Judge(me))
}

func TestSameMachineOtherBoot(t *testing.T) {
	now := process.Identity{Host: "a", Machine: "m", Boot: "2", PID: 1}
	cases := map[string]struct {
		record process.Identity
		want   bool
	}{
		"rebooted":        {process.Identity{Host: "a", Machine: "m", Boot: "1"}, true},
		"same boot":       {process.Identity{Host: "a", Machine: "m", Boot: "2"}, false},
		"boot unknown":    {process.Identity{Host: "a", Machine: "m"}, false},
		"other host name": {process.Identity{Host: "b", Machine: "m", Boot: "1"}, false},
		"other machine":   {process.Identity{Host: "a", Machine: "n", Boot: "1"}, false},
		"machine unknown": {process.Identity{Host: "a", Boot: "1"}, false},
		"only a time":     {process.Identity{Host: "a", Machine: "m", Boot: "m@1700000000"}, false},
	}
	for name, c := range cases {
		require.Equal(t, c.want, c.record.SameMachineOtherBoot(now), name)
	}
	noMachine := process.Identity{Host: "a", Boot: "2"}
	require.False(t, process.Identity{Host: "a", Boot: "1"}.SameMachineOtherBoot(noMachine))
}

func TestIdentityAsJSON(t *testing.T) {
	full := process.Identity{Host: "a", Machine: "m", Boot: "b", Namespace: "n", PID: 7, Start: 9}
	text, err := json.Marshal(full)
	require.NoError(t, err)
	require.JSONEq(t, `{"host":"a","machine":"m","boot":"b","pidns":"n","pid":7,"start":9}`, string(text))
	var back process.Identity
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, full, back)

	text, err = json.Marshal(process.Identity{})
	require.NoError(t, err)
	require.JSONEq(t, `{"host":"","pid":0}`, string(text))
}

func TestLifeAsString(t *testing.T) {
	require.Equal(t, "unknown", process.Life(0).String())
	require.Equal(t, "alive", process.Alive.String())
	require.Equal(t, "gone", process.Gone.String())
	require.Equal(t, "Life(9)", process.Life(9).String())
}

func BenchmarkJudgeLiving(b *testing.B) {
	me := self(b)
	b.ReportAllocs()
	for b.Loop() {
		me.Judge(me)
	}
}
