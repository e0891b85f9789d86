package mongolab

import (
	"maps"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Exchange is a command and its result.
type Exchange struct {
	Command
	// Outcome is what the Injector decided.
	Outcome Outcome
	// Executed reports whether the server has executed the command, even if the client does not know.
	// It is false while the server is still executing it.
	Executed bool
	// Repeated reports whether the write was recognised as a retry of an executed write, and was not
	// executed again; see Options.ReplicaSet.
	Repeated bool
	// Reply is the server's reply, nil if it sent none.
	Reply bson.Raw
	// Err is the reason why the exchange ended without a reply, other than an injected fault.
	Err error
}

// Counts are the numbers of commands by name. Upkeep is not counted.
type Counts map[string]int

// Since returns the commands added since earlier counts. Names without new commands are omitted.
func (c Counts) Since(earlier Counts) Counts {
	later := Counts{}
	for name, n := range c {
		if n > earlier[name] {
			later[name] = n - earlier[name]
		}
	}
	return later
}

// logLength bounds the log, because a server may run for days.
const logLength = 4096

// journal numbers the commands, calls the Injector, and logs the results.
type journal struct {
	mu     sync.Mutex
	inject Injector
	next   int
	nth    map[string]int
	counts Counts
	log    []*Exchange
}

func newJournal() *journal { return &journal{nth: map[string]int{}, counts: Counts{}} }

// begin logs a command and decides its fault.
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

// reject logs that a connection sent an invalid command.
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

// note updates the log of an exchange.
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

// exchanges returns a copy of the log.
func (j *journal) exchanges() []Exchange {
	j.mu.Lock()
	defer j.mu.Unlock()
	var kept []Exchange
	for _, x := range j.log {
		kept = append(kept, *x)
	}
	return kept
}
