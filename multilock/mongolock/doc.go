// Package mongolock keeps locks in a MongoDB collection, one document per lock.
//
//	src, err := mongolock.Open(mongolock.Options{Place: mongolock.Place{URL: "mongodb://db1,db2,db3/jobs.locks"}})
//	...
//	defer src.Close()
//	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
//
// # The document
//
// A lock is taken by one upsert on {_id: NAME, locked: false}. If it is held, the
// upsert tries to insert a second document of that _id, and the server answers
// with a duplicate key. This is a well-known recipe, and programs that follow it
// with nothing but {_id, locked} share the collection with this package: each sees
// what the other holds.
//
// What the recipe lacks is added. While a lock is held, locked is the token of the
// acquisition and not just true. Every later write has the token in its filter, so
// it reaches this acquisition or nothing; and code that unlocks what is
// {locked: true} cannot take away what it does not hold. A sub-document "held"
// says who holds the lock and counts the signs of life; a release removes it. A
// crashed holder is found out by its silence: whoever waits sees the count stand
// still for the whole TTL, on its own clock, and then breaks exactly what it saw.
//
// # What is needed
//
// All writes are acknowledged by the majority of the replica set and journaled:
// what was granted once is not rolled back by a failover. A standalone server has
// no failover, and no more durability than its one disk; it works, and
// [Source.Examine] warns. FerretDB 1 does not update a document in one step, so it
// cannot hold a lock, and is refused. A sharded collection must be sharded by _id.
//
// docs/mongodb.md has the format, the rights that are needed and the limits.
package mongolock
