package source

import (
	"context"
	"time"
)

// Sweeper is a Source in which contenders that crash leave entries behind.
type Sweeper interface {
	Source
	// Leftovers lists these entries, and those of live contenders: some thousands at a time if
	// there are very many.
	Leftovers(ctx context.Context) ([]Leftover, error)
	// Sweep removes the leftovers that Leftovers calls dead. It returns them, and the strange ones.
	// It continues after an error, and joins all errors.
	Sweep(ctx context.Context) ([]Leftover, error)
}

// Leftover is an entry that a contender which crashed, or lost its source, left behind. It holds no
// lock and blocks no process.
type Leftover struct {
	Entry string        `json:"entry"`  // its name in the source
	Age   time.Duration `json:"age_ns"` // by the source's clock
	Why   string        `json:"why"`    // why it is considered a leftover, or why not
	Dead  bool          `json:"dead"`   // Sweep removes it
	// Strange means that no contender wrote the entry: it is where leftovers are, and Sweep never
	// touches it.
	Strange bool `json:"strange,omitempty"`
}

// NameChecker is a Source that can check names in advance.
type NameChecker interface {
	Source
	// CheckName checks whether name can be the name of a lock. It sends no request. The error is
	// the *InvalidError that Contend would return.
	CheckName(name string) error
}
