// Package source is for authors of lock sources: the interfaces that package multilock requires of
// a lock source, and helpers to implement them.
//
// A [Source] makes single attempts: its [Contender] tries to acquire one lock, its [Observer]
// inspects one, and its [Lease] is the lock while it is held. Package multilock does all waiting,
// renewing and giving up. A source offers further abilities as optional interfaces ([Ledger],
// [Group], [Journal], [ManifestStore], ...), and describes its guarantees with [Describer]. Package
// locktest has the tests that every source must pass.
package source
