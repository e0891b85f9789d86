// Package cooklock is the cooking lock: a lock that needs nothing of the system
// which hosts share but one cell with an atomic set-and-get, and that is released by
// time alone. It is a source.Source.
//
//	files, err := fslock.Open(fslock.Options{Base: "/shared", Group: "cooking"})
//	...
//	src, err := cooklock.New(cooklock.Options{Ledger: files, Period: 5 * time.Minute})
//
// It gives a service: whatever number of hosts ask for the lock again and again, in
// every period at most one gets it; and when that one dies another one gets it, a
// period later.
//
// # How it works
//
// Watch, then swap, then compare. A contender looks at the register, and waits until
// it has seen one value unchanged for a whole period, by its own timer. It looks
// once more, and swaps in a value of its own that nobody has ever used. It has the
// lock if the swap returned the very value that it watched, for four fifths of the
// period from before the swap. Then nobody has swapped since the watch began, so
// whoever had the lock before began earlier, and is done.
//
// Hosts compare no clocks. Each step may be delayed for any time, and a look may show
// what was there long ago: two never have the lock. That all rests on one condition:
// all use the same period. docs/cooking.md has the reasons, docs/models the proofs.
//
// # What is different from other locks
//
// A lock ends by time. Release does not give it back earlier, nothing prolongs it,
// and nobody can break it. Lock.Context ends when the time is over, with
// source.ErrOver.
//
// A contender that knows nothing of the register watches for a period first, but
// for the first one ever. Options.Notes lets a process go on where an earlier one of
// the same host ended, so that commands which never wait get their turn.
package cooklock
