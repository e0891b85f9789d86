// Package multilock provides a lock that hosts share, and notifies the program when the lock is lost.
//
// A [Source] stores locks: a directory on a shared filesystem (package fslock), or a server. This package
// implements what is the same for all of them: waiting, heartbeats, and reporting a loss.
//
//	src, err := fslock.Open(fslock.Options{Base: "/shared/jobs"})
//	...
//	err = multilock.Do(ctx, src, "nightly", multilock.Options{}, work)
//
// The context of work is cancelled, with a *LostError as its cause, when the lock is lost. A program that
// needs the lock itself calls Acquire or TryAcquire, and always calls Release: as long as a live process
// renews a lock, nothing else releases it. The error of Release reports whether the lock was held until
// then.
//
// # Guarantees
//
// Two live processes never hold one name at the same time, unless one of them sent no heartbeat for its
// whole time to live (TTL): it was stopped, suspended, or cut off from the source. That process knows
// before the TTL is over: a fifth of the TTL earlier the lock's context is cancelled, by a clock that
// counts suspended time, and Verify, Fence and Release return [ErrLost].
//
// A lease cannot stop its holder: a program that was suspended between a check and a write may write after
// it lost the lock. Where that matters, pass the fencing token of [Lock.Fence] to the resource. It only
// grows for a name, and the resource rejects a token smaller than the largest that it has seen.
//
// An error never counts as an answer: a call reports that the lock was acquired, that it is held
// (*HeldError), or that the outcome is unknown ([ErrUnsure]).
package multilock
