package conform

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/multilock/vfs"
)

// Explanation is how simnfs can produce a kernel's answers.
type Explanation struct {
	Forgot int // how often a client must have dropped cached data
	Tried  int // runs of the simulation
}

// mostTried limits the search for an explanation.
const mostTried = 200_000

// Explain finds out what the clients must have cached and dropped to give these answers. The error is
// about the first step whose answer is not possible.
func Explain(program []Step, answers []Answer, mounts []simnfs.Options) (found Explanation, err error) {
	doubts := doubts{}
	best, why := -1, ""
	for found.Tried < mostTried {
		doubts.taken = doubts.taken[:0]
		step, wrong := simulate(program, answers, mounts, &doubts)
		found.Tried++
		if wrong == "" {
			for _, forgot := range doubts.taken {
				if forgot {
					found.Forgot++
				}
			}
			return found, nil
		}
		if step > best {
			best, why = step, wrong
		} else if step == best && !strings.Contains(why, wrong) {
			why += "; or " + wrong
		}
		if !doubts.next() {
			break
		}
	}
	return found, fmt.Errorf("step %d of\n%s%s", best, told(program, answers, best), why)
}

func told(program []Step, answers []Answer, last int) string {
	var b strings.Builder
	for i := range last + 1 {
		fmt.Fprintf(&b, "%3d %s = %s\n", i, program[i], answers[i])
	}
	return b.String()
}

// doubts are the choices whether a client has dropped its cache, in the order of the checks.
type doubts struct{ given, taken []bool }

func (d *doubts) forgot() bool {
	at := len(d.taken)
	forgot := at < len(d.given) && d.given[at]
	d.taken = append(d.taken, forgot)
	return forgot
}

// next advances to the next combination.
func (d *doubts) next() bool {
	for at := len(d.taken) - 1; at >= 0; at-- {
		if !d.taken[at] {
			d.given = append(append(d.given[:0], d.taken[:at]...), true)
			return true
		}
	}
	return false
}

// epoch is the start time of simulated programs; each step takes a second.
var epoch = time.Unix(1_000_000_000, 0)

// Simulated returns clients of a new simulated server, and a function that advances the time by a step.
func Simulated(mounts []simnfs.Options) (players []*Player, tick func()) {
	now := epoch
	server := simnfs.Serve(func() time.Time { return now })
	for _, options := range mounts {
		root, err := server.Mount(options).OpenDir("/")
		if err != nil {
			panic(err)
		}
		players = append(players, NewPlayer(root))
	}
	return players, func() { now = now.Add(time.Second) }
}

func simulate(program []Step, answers []Answer, mounts []simnfs.Options, d *doubts) (step int, wrong string) {
	mounts = slices.Clone(mounts)
	for i := range mounts {
		mounts[i].Forgot = d.forgot
	}
	players, tick := Simulated(mounts)
	same := newSame()
	for i, s := range program {
		tick()
		want := players[s.Client].Play(i, s)
		if wrong := same.differ(answers[i], want); wrong != "" {
			return i, wrong
		}
	}
	return len(program), ""
}

// same matches values that are numbered differently: files, and times.
type same struct {
	inodes  map[uint64]uint64 // a real disk may reuse a number
	handles map[vfs.Handle]vfs.Handle
	theirs  map[vfs.Handle]bool
	times   map[moment]time.Time
}

// moment is the time of a step for one file: a step that changes two files may do so at two times.
type moment struct {
	inode uint64
	at    int64
}

func newSame() *same {
	return &same{map[uint64]uint64{}, map[vfs.Handle]vfs.Handle{}, map[vfs.Handle]bool{}, map[moment]time.Time{}}
}

// differ describes how an answer differs from the simulated one.
func (s *same) differ(got, want Answer) string {
	switch {
	case got.Skipped != want.Skipped, got.Error != want.Error, got.Text != want.Text:
		return "simnfs: " + want.String()
	case got.Inode != known(s.inodes, want.Inode, got.Inode):
		return "simnfs: another file: " + want.String()
	case !s.matches(got.Handle, want.Handle):
		return "simnfs: another handle: " + want.String()
	case !s.when(want.Inode, got.Modified, want.Modified) || !s.when(want.Inode, got.Changed, want.Changed):
		return "simnfs: another time: " + want.String()
	}
	return ""
}

func (s *same) matches(got, want vfs.Handle) bool {
	had, seen := s.handles[want]
	if !seen && got != "" {
		if s.theirs[got] {
			return false
		}
		s.handles[want], s.theirs[got] = got, true
		return want != ""
	}
	return got == had
}

// when matches times: for one file, equal times must be equal and later ones later.
func (s *same) when(inode uint64, got, want time.Time) bool {
	if got.IsZero() || want.IsZero() {
		return got.IsZero() == want.IsZero()
	}
	m := moment{inode, want.Unix()}
	if !known(s.times, m, got).Equal(got) {
		return false
	}
	for other, theirs := range s.times {
		if m.at > other.at && !got.After(theirs) || m.at < other.at && !got.Before(theirs) {
			return false
		}
	}
	return true
}

// known returns the value of a key; a key without a value gets the given one first.
func known[K, V comparable](m map[K]V, key K, value V) V {
	if _, there := m[key]; !there {
		m[key] = value
	}
	return m[key]
}
