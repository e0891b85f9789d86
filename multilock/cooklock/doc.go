// Package cooklock is the cooking lock: a lock that needs nothing from the system that its hosts
// share but one cell with an atomic set-and-get, and that is released by time alone. It is a
// source.Source.
//
//	files, err := fslock.Open(fslock.Options{Base: "/shared", Group: "cooking"})
//	...
//	src, err := cooklock.New(cooklock.Options{Ledger: files, Period: 5 * time.Minute})
//
// It is useful for a service: any number of hosts try to acquire the lock again and again, in every
// period at most one of them succeeds; and if that host dies, another one succeeds a period later.
//
// # How it works
//
// Watch, then swap, then compare. A contender looks at the register, and waits until it has seen
// one value unchanged for a whole period, by its own timer. It looks once more, and swaps in a new,
// unique value. It has acquired the lock if the swap returned the very value that it watched, for
// four fifths of the period from before the swap. Then there was no swap since the watch began, so
// any earlier holder began before that, and its time is over.
//
// Hosts compare no clocks. Each step may be delayed for any time, and a look may show an outdated
// value: two processes never hold the lock. All this depends on one condition: all processes use
// the same period. docs/internals/cooking.md has the reasons, docs/models the proofs.
//
// # What is different from other locks
//
// A lock ends by time. Release does not free it earlier, it cannot be renewed, and it cannot be
// broken. Lock.Context ends when the time is over, with source.ErrOver.
//
// A contender that knows nothing of the register watches it for a period first, unless it was never
// used. With Options.Notes a process continues the watch of an earlier one of the same host, so
// that commands which never wait can acquire the lock.
package cooklock
