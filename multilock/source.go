package multilock

import "github.com/multilock/go/multilock/source"

// What a user of a lock names of what its source says. Package source has it all.
type (
	// Source is a place where locks live; package fslock has one on a shared filesystem.
	Source = source.Source
	// Holder says who holds a lock.
	Holder = source.Holder
	// Sighting is what one look at a lock showed.
	Sighting = source.Sighting
	// Patience says how long a silent holder is given.
	Patience = source.Patience
	// Result is how the job of a name ended.
	Result = source.Result
	// LostError says why a holder does not hold its lock any more.
	LostError = source.LostError
)

// The states in which a Sighting shows a lock.
const (
	StateFree    = source.StateFree    // nobody holds it
	StateHeld    = source.StateHeld    // somebody holds it and counts as alive
	StateSuspect = source.StateSuspect // its holder has been silent for too long, and is being watched
	StateDead    = source.StateDead    // the evidence for its holder's death is complete
)
