package nfs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/simnfs"
	"github.com/multilock/go/internal/simnfs/conform"
)

var (
	programs     = flag.Int("programs", 100, "how many programs the kernel and simnfs are compared by")
	firstProgram = flag.Uint64("first-program", 1, "the seed of the first of them")
)

// tick waits for the next time that the server's file system can tell from the last. The
// machine has one kernel, and this is the clock that it dates changes by.
func tick() {
	coarse := func() (now unix.Timespec) {
		_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) // cannot fail
		return now
	}
	for begin := coarse(); coarse() == begin; {
		time.Sleep(time.Millisecond)
	}
}

// What the exploration of the lock's schedules rests on: real clients of all versions answer
// nothing that simulated ones could not.
// Rule: none (simnfs)
func TestClientsAnswerAsSimulated(t *testing.T) {
	needLab(t)
	p := newPlace(t)
	seeds := make(chan uint64)
	var together sync.WaitGroup
	var found tally
	for range 40 {
		together.Go(func() {
			for seed := range seeds {
				found.add(compare(t, p, seed))
			}
		})
	}
	for n := range uint64(*programs) {
		if found.isEnough() {
			break
		}
		seeds <- *firstProgram + n
	}
	close(seeds)
	together.Wait()
	t.Logf("%d programs; in %d of them a client had forgotten something; %d not as simulated", found.programs, found.forgot, found.wrong)
}

// tally is what became of all programs.
type tally struct {
	mu                      sync.Mutex
	programs, forgot, wrong int
}

// isEnough says that so much is wrong that more would not help.
func (a *tally) isEnough() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.wrong > 20
}

func (a *tally) add(e conform.Explanation, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.programs++
	if e.Forgot > 0 {
		a.forgot++
	}
	if err != nil {
		a.wrong++
	}
}

// compare plays one program, two clients in turn with three, of versions in turn.
func compare(t *testing.T, p place, seed uint64) (conform.Explanation, error) {
	clients := 2 + int(seed%2)
	program := conform.Draw(seed, clients, 14)
	name := strconv.FormatUint(seed, 10)
	if err := os.Mkdir(p.stored(name), 0o777); err != nil {
		t.Error(err)
		return conform.Explanation{}, err
	}
	var players []*conform.Player
	var mounts []simnfs.Options
	versions := ""
	for i := range clients {
		h := hosts()[(seed/2+uint64(i))%3]
		root, err := h.OpenDir(p.on(h, name))
		if err != nil {
			t.Error(err)
			return conform.Explanation{}, err
		}
		players = append(players, conform.NewPlayer(root))
		mounts = append(mounts, simnfs.Options{V4: h.version != "3", MinAge: time.Hour, MaxAge: time.Hour})
		versions += " " + h.version
	}
	answers := conform.Play(program, players, tick)
	keep(t, seed, answers)
	found, err := conform.Explain(program, answers, mounts)
	if err != nil {
		t.Errorf("program %d, clients of%s: %v", seed, versions, err)
	}
	return found, err
}

// keep leaves the answers where --out brings them from, one program a line.
func keep(t *testing.T, seed uint64, answers []conform.Answer) {
	text, err := json.Marshal(map[string]any{"seed": seed, "answers": answers})
	if err == nil {
		err = os.WriteFile(fmt.Sprintf("/out/program-%d.json", seed), text, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
