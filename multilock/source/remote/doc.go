// Package remote is for authors of lock sources on a server: what such sources have in common,
// whatever the server is.
//
// An author implements a [Store], which is a table with transactions of a few keys, and [Table]
// makes a source of it. One level below, an author implements the requests for one lock, as [Lock],
// [Attempts] and [Hold], and returns what each has found. [Observer], [Contender] and [Lease] send
// these requests in a safe order, and handle lost replies.
//
// The rest sends no requests, and can be used alone. [URL] parses the address of the locks, and
// [Member] is the process that uses a group of them. [Record] (the holder of a lock),
// [EncodeResult] and [DecodeEvents] are the stored forms, as JSON. [Witness] judges observations of
// a lock, [Holding] is the end of a lease, [Changes] makes each change under it once, and [News]
// wakes a waiter. [Repeat], [Facts], [OpError] and [Outlive] are for requests.
//
// docs/internals/sources.md describes how to write a source.
package remote
