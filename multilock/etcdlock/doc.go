// Package etcdlock keeps locks in etcd, a replicated store that survives the loss of a member, for
// hosts without a shared filesystem.
//
//	place := etcdlock.Place{URL: "etcd://etcd1:2379,etcd2:2379,etcd3:2379/jobs?tls=true"}
//	src, err := etcdlock.Open(etcdlock.Options{Place: place})
//	...
//	defer src.Close()
//	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
//
// A lock is two keys that one transaction creates: the record of its holder, and a heartbeat under
// a lease, which the holder keeps alive. The record outlasts the lease: the next contender sees the
// dead lock, and breaks it in a transaction whose conditions are that record, and no heartbeat.
//
// docs/internals/etcd.md has the keys, the costs and the limits.
package etcdlock
