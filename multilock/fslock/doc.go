// Package fslock implements locks on a shared filesystem: a [source.Source] for hosts that share nothing
// but a directory, usually over NFS.
//
// A lock NAME of a group is held while the directory BASE/GROUP/NAME contains the file NAME.locked. To
// acquire it, a contender prepares such a directory under BASE/.multilock/staging, under a random name that
// is never used again, and renames it to BASE/GROUP/NAME. The rename fails if a non-empty directory is
// already there. Each base directory is tested once, and a filesystem on which that rename succeeds is
// rejected. Whatever the rename returns, the contender then reads the file back and compares its token,
// because a network filesystem can lose replies and repeat calls.
//
// The holder keeps a descriptor of its directory and does everything else through it. So no call of a
// holder, or of a process that breaks a dead lock, can affect a later lock of the same name. A job's result
// is committed in the same way, by a rename out of that directory, which fails after a takeover.
// docs/protocol.md has the whole protocol, with the bytes on disk and what each crash leaves behind.
//
// # Guarantees and limits
//
// The guarantees of package multilock hold on a server that keeps what it has confirmed ("sync" exports)
// and on mounts that do not give up ("hard"). With "async" exports, a crash of the server can take a lock
// from its holder, which notices at its next heartbeat. Clocks of different hosts are never compared: an
// age is the difference of two times of the server, and a wait is measured by the waiter's own clock.
package fslock
