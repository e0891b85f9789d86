// Package etcdlock keeps locks in etcd: on a replicated engine that survives the loss of a
// member, for hosts that share no filesystem.
//
//	place := etcdlock.Place{URL: "etcd://etcd1:2379,etcd2:2379,etcd3:2379/jobs?tls=true"}
//	src, err := etcdlock.Open(etcdlock.Options{Place: place})
//	...
//	defer src.Close()
//	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
//
// # The keys
//
// A lock is two keys that one transaction creates: the record of who holds it, and a sign of
// life that hangs on a lease. The holder keeps the lease alive; when it does not, the server
// removes the sign, and whoever comes next breaks the lock, in a transaction that asks for
// that very record, and for the sign to be gone. So a lock whose job lives on while its holder
// died is still there to be seen, and history tells of what was broken.
//
// Who waits has a ticket, a key under a lease of its own, and watches the ticket right before
// it, or the lock if there is none. Locks are had in the order of the tickets, and each
// release wakes one.
//
// docs/etcd.md has the keys, the costs and the limits.
package etcdlock
