package source

import (
	"context"
	"time"
)

// Sweeper is a Source in which contenders that crash leave things behind.
type Sweeper interface {
	Source
	// Leftovers lists what was left behind, and what belongs to contenders at work: of
	// very many some thousands, and others once those are swept.
	Leftovers(ctx context.Context) ([]Leftover, error)
	// Sweep removes the leftovers that Leftovers calls dead. It returns them, and those
	// that it calls strange. It goes on after an error; the error joins all of them.
	Sweep(ctx context.Context) ([]Leftover, error)
}

// Leftover is something that a contender which crashed, or lost its source, left
// behind. It holds no lock and is in nobody's way.
type Leftover struct {
	Entry string        `json:"entry"`  // its name in the source
	Age   time.Duration `json:"age_ns"` // by the source's clock
	Why   string        `json:"why"`    // why it is taken for a leftover, or why not
	Dead  bool          `json:"dead"`   // Sweep removes it
	// Strange says that nobody left it behind who contended for a lock: it lies where such
	// things lie, and Sweep never touches it.
	Strange bool `json:"strange,omitempty"`
}

// NameChecker is a Source that can tell beforehand which names it can hold.
type NameChecker interface {
	Source
	// CheckName says whether name can be the name of a lock. It asks nobody. The error
	// is an *InvalidError, the same with which Contend would refuse the name.
	CheckName(name string) error
}
