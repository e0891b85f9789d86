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

// tick waits until the server's filesystem gives changes a new timestamp. The server and all hosts
// share one kernel, whose coarse clock supplies these timestamps.
func tick() {
	coarse := func() (now unix.Timespec) {
		_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) // cannot fail
		return now
	}
	for begin := coarse(); coarse() == begin; {
		time.Sleep(time.Millisecond)
	}
}

// Real clients of all versions give no answer that the simulated ones could not. The exploration of
// the lock's schedules relies on this.
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

// tally counts the outcomes of all programs.
type tally struct {
	mu                      sync.Mutex
	programs, forgot, wrong int
}

// isEnough reports whether so many programs failed that running more would not help.
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

// compare runs one program, alternately with two and three clients, of varying versions.
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

// keep writes the answers to a file that the lab's --out collects, one program a line.
func keep(t *testing.T, seed uint64, answers []conform.Answer) {
	text, err := json.Marshal(map[string]any{"seed": seed, "answers": answers})
	if err == nil {
		err = os.WriteFile(fmt.Sprintf("/out/program-%d.json", seed), text, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
