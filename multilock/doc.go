// Package multilock gives a Go program a lock that hosts share, and tells the program when it
// has lost the lock.
//
// A [Source] is where locks live: a directory on a shared filesystem (package fslock), or a
// server. This package does what is the same for all of them: it waits, renews, and reports a
// loss.
//
//	src, err := fslock.Open(fslock.Options{Base: "/shared/jobs"})
//	...
//	err = multilock.Do(ctx, src, "nightly", multilock.Options{}, work)
//
// The context of work is cancelled, with a *LostError as its cause, when the lock is lost. A
// program that needs the lock itself calls Acquire or TryAcquire, and Release in any case: as
// long as a live process renews a lock, nothing else gives it back. The error of Release says
// whether the lock was held until then.
//
// # Guarantees
//
// Two live processes never hold one name at the same time, unless one of them sent no heartbeat
// for its whole time to live (TTL): it was stopped, suspended, or cut off from the source. That
// process knows before the TTL is over: a fifth of the TTL earlier the lock's context is
// cancelled, by a clock that counts suspended time, and Verify, Fence and Release return
// [ErrLost].
//
// A lease cannot stop its holder: a program that was suspended between a check and a write may
// write after it lost the lock. Where that matters, pass the number of [Lock.Fence] to the
// resource. It only grows for a name, and the resource rejects a number smaller than the
// largest that it has seen.
//
// An error is never an answer: a call reports that the lock was acquired, that it is held
// (*HeldError), or that it cannot tell ([ErrUnsure]).
package multilock
