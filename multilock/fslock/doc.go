// Package fslock is the lock on a shared filesystem: a [source.Source] for
// hosts that have nothing but a directory in common, usually on NFS.
//
// A lock NAME of a group is held while the directory BASE/GROUP/NAME contains
// the file NAME.locked. A contender prepares such a directory under
// BASE/.multilock/staging, under a random name that is never used again, and
// renames it into place. On a directory that is not empty that fails, on every
// file system whose rename is worth the name; one where it does not is refused
// by a test that is made once per base directory. Whatever the rename answered,
// the contender then reads the file back and compares its token, because on a
// network file system replies get lost and calls are repeated.
//
// The holder keeps a descriptor of its directory, and does everything else
// through it: so no call of a holder, or of somebody who breaks a dead lock, can
// reach any other lock than the very one it means. The result of a job is
// committed in the same way: by a rename out of that directory, which nobody can
// make any more once the lock is somebody else's. docs/protocol.md tells the
// whole protocol, with the bytes on disk and what every crash leaves behind.
//
// # What is promised, and what is not
//
// The promise of package multilock, given a server that keeps what it confirmed
// ("sync" exports) and mounts that do not give up ("hard"). With "async" exports
// a server's crash can take a lock away from its holder, who notices at its next
// renewal. The file system's rename must refuse a directory that is not empty.
// Clocks are never compared between hosts: ages are the server's time against
// the server's time, waiting is the waiter's own.
package fslock
