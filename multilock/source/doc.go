// Package source is for the author of a lock source: what package multilock asks of a
// place where locks can live, and what it offers to those who write one.
//
// A [Source] makes single attempts: its [Contender] tries to take one lock, its
// [Observer] looks at one, and its [Lease] is the lock while it is held. All waiting,
// renewing and giving up is multilock's. Whatever else a source can do, it shows by an
// interface of its own ([Ledger], [Group], [Journal], [ManifestStore], ...), and says of
// itself by [Describer]. Package locktest has the tests that every source must pass.
package source
