// Package multilock gives a Go program a lock that hosts share, and tells it
// when that lock is gone.
//
// A [Source] is where locks live: a directory on a shared filesystem (package
// fslock), or another system. This package does what is the same for all of
// them: it waits, renews, and surfaces a loss.
//
//	src, err := fslock.Open(fslock.Options{Base: "/shared/jobs"})
//	...
//	err = multilock.Do(ctx, src, "nightly", multilock.Options{}, work)
//
// The context that work gets is cancelled, with a *LostError as its cause, when the lock
// is lost. Who needs the lock itself calls Acquire or TryAcquire, and then Release in any
// case: nothing else gives a lock back that a living process renews. Its error says
// whether the lock was held until then.
//
// # What is guaranteed
//
// Two live holders never both believe that they hold one name, unless one of
// them gave no sign of life for its whole time to live (TTL): because it was
// stopped, suspended, or cut off from the source. That one knows before the TTL
// has passed: the lock's context is cancelled a fifth of the TTL earlier, on a
// clock that also counts suspend, and Verify, Fence and Release say [ErrLost].
//
// A lease cannot stop its holder's hand. A program that was suspended between a
// check and a write may write after it lost the lock. Where that matters, give
// the protected resource the number of [Lock.Fence], which only grows per name,
// and let it refuse smaller ones than it has seen.
//
// An error is never an answer: a call says acquired, held (*HeldError), or that
// it cannot tell ([ErrUnsure]).
package multilock
