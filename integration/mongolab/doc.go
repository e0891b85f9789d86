// Package mongolab provides a MongoDB server for tests, with everything that can go wrong between it
// and its clients.
//
// A [Server] is a proxy that understands the wire protocol, with a database behind it: FerretDB, which
// runs inside the test's process and needs no installation, or a real mongod named by an environment
// variable ([ServerVariable]). The proxy can delay, drop or reject each command, or execute it without
// its client ever learning the result; see [Outcome]. It counts and logs commands, so tests can check
// what an operation costs and which commands were executed.
//
// # Limits of the embedded server
//
// FerretDB 1 does not update a document atomically: it reads, then writes, so two clients that both
// expect an unlocked document can both lock it. Tests of a lock would rightly fail on plain FerretDB.
// The proxy therefore passes one command at a time, which restores everything that MongoDB guarantees
// for a single command on a single document.
//
// FerretDB lacks transactions, change streams, TTL indexes, $$NOW, $expr and additional nodes. Writes
// are never rolled back, and write and read concerns are accepted but have no effect.
//
// # What is imitated
//
// With [Options.ReplicaSet] the server presents itself as the primary of a replica set, so the driver
// retries writes after an error. The proxy recognises a retry by its session and transaction number,
// and returns the first reply again, as MongoDB does. A failover is imitated by its errors
// ([NotWritablePrimary] and the like); it loses no writes.
package mongolab
