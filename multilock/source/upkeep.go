package source

import "time"

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
