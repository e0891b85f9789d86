// Package mongolock keeps locks in a MongoDB collection, one document per lock.
//
//	src, err := mongolock.Open(mongolock.Options{Place: mongolock.Place{URL: "mongodb://db1,db2,db3/jobs.locks"}})
//	...
//	defer src.Close()
//	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
//
// # The document
//
// A lock is acquired by one upsert on {_id: NAME, locked: false}. If it is held, the upsert tries
// to insert a second document with that _id, and the server replies with a duplicate key error.
// This is a well-known recipe, and programs that follow it with nothing but {_id, locked} can share
// the collection with this package: each sees the locks of the other.
//
// This package adds what the recipe lacks. While a lock is held, locked is the token of the
// acquisition and not just true. Every later write has the token in its filter, so it changes this
// acquisition's document or nothing; and code that unlocks {locked: true} cannot remove a lock that
// it does not hold. A sub-document "held" identifies the holder and counts the heartbeats; a
// release removes it. A crashed holder is detected by its missing heartbeats: a waiter sees the
// same count for the whole TTL, on its own clock, and then breaks exactly the lock that it saw.
//
// # Requirements
//
// All writes are acknowledged by the majority of the replica set and journaled: a failover does not
// roll back a lock. A standalone server has no failover, and no more durability than its one disk;
// it works, and [Source.Examine] warns. FerretDB 1 does not update a document in one step, so it
// cannot hold a lock, and is rejected. A sharded collection must be sharded by _id.
//
// docs/internals/mongodb.md has the format, docs/mongodb.md the necessary privileges and the limits.
package mongolock
