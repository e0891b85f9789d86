// Package pglock keeps locks in PostgreSQL: for hosts that share no filesystem, and have a
// database.
//
//	place := pglock.Place{URL: "postgres://jobs@db1,db2/work?sslmode=verify-full"}
//	src, err := pglock.Open(pglock.Options{Place: place})
//	...
//	defer src.Close()
//	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
//
// # The tables
//
// A lock that is held is a row: whose it is, as JSON, with the times of the acquisition and of
// the last sign of life by the server's clock. Whoever inserts it has the lock, for there is one
// row of a name. Nothing rests on a session: a connection that breaks loses no lock, and a pooler
// may stand in between.
//
// Each operation is a few statements that go to the server at once and are carried out as one
// transaction, so that each costs one answer's time.
//
// Who waits has a row, too, in the order of arrival, and listens. Each release tells the first.
//
// docs/postgres.md has the tables, the costs and the limits.
package pglock
