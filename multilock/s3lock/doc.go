// Package s3lock keeps locks in a bucket of an object store with conditional writes, such as Amazon
// S3, for hosts that share neither a filesystem nor a server of their own.
//
//	place := s3lock.Place{URL: "s3://bucket/jobs?region=eu-central-1"}
//	src, err := s3lock.Open(s3lock.Options{Place: place})
//	...
//	defer src.Close()
//	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
//
// All that belongs to the name of a lock is one object: its holder, its result, the token of the
// last broken lock, and a counter. Every change of it is a conditional write, which names the ETag
// that it replaces, so that of several writers one succeeds. A release empties the object and keeps
// the counter, from which the fencing tokens come.
//
// docs/decisions/0028-object-store.md has the layout of the objects, and what a store must
// guarantee.
package s3lock
