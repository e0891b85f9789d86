// Package mongolab is a MongoDB server for tests, and everything that can go
// wrong between it and its clients.
//
// A [Server] is a proxy that understands the wire protocol, with a database
// behind it: FerretDB, which runs inside the test's own process and needs nothing
// to be installed, or a real mongod that an environment variable names
// ([ServerVariable]). Each command that passes can be delayed, dropped, refused,
// or carried out without its client ever learning so; see [Outcome]. Commands are
// counted and logged, so that tests can say what an operation costs and which
// commands were really carried out.
//
// # What the embedded server is, and is not
//
// FerretDB 1 does not update a document in one step: it reads, then writes, and
// two clients that both expect an unlocked document both lock it. A lock that is
// tested against it alone fails, rightly so. The proxy therefore lets one command
// through at a time, and everything that MongoDB guarantees for a single command on
// a single document is true again.
//
// Missing are transactions, change streams, TTL indexes, $$NOW and $expr, and any
// second node: writes are never rolled back, and write and read concerns are
// accepted without a meaning.
//
// # What is imitated
//
// With [Options.ReplicaSet] the server says that it is the primary of a replica
// set, and the driver then repeats writes by itself after an error. The proxy
// recognises such a repetition by its session and transaction number, and gives
// the first answer again, as MongoDB does. A failover is imitated by its errors
// ([NotWritablePrimary] and the like): nothing is lost in it.
package mongolab
