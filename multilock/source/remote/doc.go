// Package remote is for authors of lock sources on a server: what such sources do alike, whatever
// the server is. Each part stands for itself, and an author takes those that fit; none of them
// talks to a server, or calls the source back.
//
// [URL] takes the place of the locks apart, and [Member] is who uses a group of them. [Record]
// is who holds a lock, [EncodeResult] how a job ended, [DecodeEvents] and [InOrder] are for the
// history, as JSON, and [Cut] for a manifest. [Observer] judges what was seen of a lock, [Holding] is the
// end of a lease, [Changes] has what is changed under it be made once, [News] is what a waiter has
// heard. [Register] is that of a cooking lock. [OpError] and [Outlive] are for each request.
//
// docs/sources.md tells how to write a source.
package remote
