package mongolab

import (
	"maps"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Exchange is what became of one command.
type Exchange struct {
	Command
	// Outcome is what the Injector decided.
	Outcome Outcome
	// Executed says that the server has carried the command out, whether or not the
	// client knows. It is false as well while the server still works on it.
	Executed bool
	// Repeated says that a write was recognised as one that had been carried out
	// before, and was not carried out again; see Options.ReplicaSet.
	Repeated bool
	// Reply is what the server answered, nil if it did not.
	Reply bson.Raw
	// Err says why the exchange ended without an answer that was not injected.
	Err error
}

// Counts are numbers of commands by name. Upkeep is not counted.
type Counts map[string]int

// Since are the commands that came after earlier counts. Names without any are
// left out.
func (c Counts) Since(earlier Counts) Counts {
	later := Counts{}
	for name, n := range c {
		if n > earlier[name] {
			later[name] = n - earlier[name]
		}
	}
	return later
}

// logLength bounds what is remembered: a server may run for days.
const logLength = 4096

// journal numbers the commands, asks the Injector, and remembers what came of it.
type journal struct {
	mu     sync.Mutex
	inject Injector
	next   int
	nth    map[string]int
	counts Counts
	log    []*Exchange
}

func newJournal() *journal { return &journal{nth: map[string]int{}, counts: Counts{}} }

// begin makes a command known, and decides its fault.
func (j *journal) begin(c Command) (*Exchange, Fault) {
	x, inject := j.enter(c)
	if inject == nil {
		return x, Fault{}
	}
	fault := inject(x.Command)
	j.note(x, func(x *Exchange) { x.Outcome = fault.Outcome })
	return x, fault
}

func (j *journal) enter(c Command) (*Exchange, Injector) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c.Upkeep {
		c.N, c.Nth = -1, -1
		return &Exchange{Command: c}, j.inject
	}
	c.N, c.Nth = j.next, j.nth[c.Name]
	j.next++
	j.nth[c.Name]++
	j.counts[c.Name]++
	x := &Exchange{Command: c}
	j.append(x)
	return x, j.inject
}

// reject makes known that a connection sent what is no command.
func (j *journal) reject(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(&Exchange{Command: Command{N: -1, Nth: -1}, Err: err})
}

func (j *journal) append(x *Exchange) {
	if len(j.log) == logLength {
		j.log = append(j.log[:0], j.log[logLength/2:]...)
	}
	j.log = append(j.log, x)
}

// note adds to what is known of an exchange.
func (j *journal) note(x *Exchange, add func(*Exchange)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	add(x)
}

func (j *journal) setInjector(inject Injector) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.inject, j.next, j.nth = inject, 0, map[string]int{}
}

func (j *journal) counted() Counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return maps.Clone(j.counts)
}

// exchanges are those in the log, as they are now.
func (j *journal) exchanges() []Exchange {
	j.mu.Lock()
	defer j.mu.Unlock()
	var kept []Exchange
	for _, x := range j.log {
		kept = append(kept, *x)
	}
	return kept
}
