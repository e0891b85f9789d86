// Package pglock keeps locks in PostgreSQL, for hosts that have a database, but no shared
// filesystem.
//
//	place := pglock.Place{URL: "postgres://jobs@db1,db2/work?sslmode=verify-full"}
//	src, err := pglock.Open(pglock.Options{Place: place})
//	...
//	defer src.Close()
//	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
//
// Everything is in one table of entries. A lock is an entry: the insertion acquires it, and every
// write of the holder names that insertion. Nothing depends on a session: a broken connection loses
// no lock, and there may be a connection pooler. Each operation is a few statements that are sent
// at once, as one transaction, and takes one round trip.
//
// docs/internals/postgres.md has the tables, the costs and the limits.
package pglock
