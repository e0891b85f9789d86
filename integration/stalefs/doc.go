//go:build linux

// Package stalefs is a network file system with the faults of NFS, for tests: the
// names and attributes that its clients remember are stale, replies get lost,
// calls are carried out after they were given up, handles point to what is gone.
//
// One [Server] has a directory of the local file system. Each [Server.Mount] is
// the client of one simulated host: a FUSE mount with a cache of its own. All of
// it needs root and /dev/fuse, and no second machine.
//
// # What is modelled
//
//   - Attributes are remembered for MinAge, and twice as long each time they turn
//     out unchanged, up to MaxAge (acdirmin and acdirmax of nfs(5)). A forced
//     statx asks the server.
//   - Names are remembered, absent ones too. A remembered name counts until its
//     time is up; then the directory is asked whether it has changed, and if it has
//     not, the name still counts. That a name is absent is believed without a
//     question by unlink and rmdir, while mkdir and rename always ask.
//   - Opening a file or directory, and a forced statx, compare the server's
//     attributes with the remembered ones (close-to-open). If a directory has
//     changed, all that was remembered about the names in it is forgotten.
//   - What a client creates, renames and removes itself goes into its own cache.
//   - A handle is an object on the server, not a path. If another client removed
//     the object, the answer is ESTALE. The kernel then walks the path once more and
//     asks the server, as it does for NFS.
//   - A file that is removed while this client has it open becomes .nfsXXXX until it
//     is closed. If another client removed it, its reader gets ESTALE.
//   - With a [Server.Tick], two changes of a directory within one tick of the
//     server's clock look like one, as with NFSv3.
//   - A call's reply is lost and the call is sent again, and carried out again,
//     because the server does not remember it: RENAME answers ENOENT, MKDIR EEXIST.
//     Or the client gives up, and the call was carried out, or never is, or is later.
//   - The server or the path to it is down. Calls block, or fail after a while on a
//     soft mount.
//
// # What is not
//
//   - There is no state on the server: no opens, delegations, leases, locks or grace
//     period of NFSv4, no sessions, and no reply cache.
//   - File content is not cached.
//   - A silly rename needs an open file here. On NFS any use of the name will do.
//   - Error replies and the replies of a client's own calls tell it nothing about
//     what others did. A real client often learns from them a little earlier.
//   - The dentries are those of the kernel's FUSE, though the same code walks the
//     paths. Before a rename, and before a mkdir of a name that it knows as present,
//     it asks the server for the name; an NFS client does the latter only.
//   - A call that waits for the server cannot be interrupted, not even by SIGKILL.
//   - There is no clock but the host's, and no power cut.
//
// For these there is the lab with a real server: integration/nfslab.
package stalefs
