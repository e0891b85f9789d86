// Package remote is for authors of lock sources on a server: what such sources do alike, whatever
// the server is.
//
// An author writes a [Store], which is a table with transactions of a few keys, and [Table] makes a source
// of it. One level below an author writes the requests for one lock, as [Lock], [Attempts] and [Hold], and
// says what each has found. [Observer], [Contender] and [Lease] make a source's of them: in which order,
// after which answer, and what a lost one means.
//
// All else stands for itself, talks to no server, and is taken where it fits. [URL] takes the place of
// the locks apart, and [Member] is who uses a group of them. [Record] is who holds a lock, [EncodeResult]
// how a job ended, [DecodeEvents] and [InOrder] are for the history, as JSON. [Witness] judges what was
// seen of a lock, [Holding] is the end of a lease, [Changes] has what is changed under it be made once,
// and [News] is what a waiter has heard. [Repeat], [Facts], [OpError] and [Outlive] are for requests.
//
// docs/sources.md tells how to write a source.
package remote
