//go:build linux

// Package stalefs is a network filesystem with the faults of NFS, for tests: its clients have stale
// names and attributes cached, replies get lost, calls are executed after their client gave up, and
// handles refer to removed files.
//
// One [Server] serves a directory of the local filesystem. Each [Server.Mount] is the client of one
// simulated host: a FUSE mount with a cache of its own. It needs root and /dev/fuse, but no second
// machine.
//
// # What is modelled
//
//   - Attributes are cached for MinAge, and for twice as long each time they turn out unchanged, up to
//     MaxAge (acdirmin and acdirmax of nfs(5)). A forced statx asks the server.
//   - Names are cached, including absent ones. When a cached name expires, the client asks whether the
//     directory has changed, and if it has not, the name remains valid. unlink and rmdir trust a cached
//     absence without asking, while mkdir and rename always ask.
//   - Opening a file or directory, and a forced statx, compare the server's attributes with the cached
//     ones (close-to-open). If a directory has changed, all cached names in it are dropped.
//   - What a client creates, renames and removes itself goes into its own cache.
//   - A handle refers to an object on the server, not to a path. If another client removed the object,
//     calls fail with ESTALE. The kernel then walks the path again and asks the server, as for NFS.
//   - A file that is removed while this client has it open becomes .nfsXXXX until it is closed. If
//     another client removes it, its reader gets ESTALE.
//   - With a [Server.Tick], two changes of a directory within one tick of the server's clock look like
//     one, as with NFSv3.
//   - A call's reply is lost and the call is retransmitted and executed again, because the server does
//     not recognise it: RENAME fails with ENOENT, MKDIR with EEXIST. Or the client gives up, and the call
//     was executed, never is, or is executed later.
//   - The server or the path to it is down. Calls block, or fail after a while on a soft mount.
//
// # What is not
//
//   - The server has no state: no opens, delegations, leases, locks or grace period of NFSv4, no
//     sessions, and no reply cache.
//   - File content is not cached.
//   - A silly rename needs an open file here. On NFS any use of the name is enough.
//   - From error replies, and from replies to its own calls, a client learns nothing about changes by
//     others. A real client often learns of them a little earlier.
//   - The dentries are those of the kernel's FUSE, though the same code walks the paths. FUSE looks up a
//     name before a rename, and before a mkdir if the name is cached as present; an NFS client does only
//     the latter.
//   - A call that waits for the server cannot be interrupted, not even by SIGKILL.
//   - There is no clock but the host's, and no power cut.
//
// The lab with a real server covers these: integration/nfslab.
package stalefs
