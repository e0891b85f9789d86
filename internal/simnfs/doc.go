// Package simnfs is an NFS server and its clients in memory, behind package vfs, for tests
// that decide what happens when.
//
// Nothing in it runs by itself. A [Server] asks the clock that it is given, and a [Client]
// hands each request to its [Transport], which carries it out, or loses its reply, or
// carries it out twice, or later. What a client answers from memory is no request.
//
// # What is modelled
//
//   - A client remembers names, absent ones too, as long as the directory's change
//     attribute is the one with which they were true. It asks for that again when what it
//     knows of the directory is older than MinAge, and up to MaxAge if it has found it
//     unchanged. Stat and StatName ask always.
//   - Opening a file or directory asks for its attributes (close-to-open). If it is gone,
//     the name is looked up once more, on the server.
//   - unlink and rmdir believe that a name is absent; mkdir, create and rename ask.
//   - What a client changes itself goes into its memory.
//   - A handle is one object for good. Of one that another client removed the server says
//     ESTALE; of a directory that this client removed, its kernel says ENOENT.
//   - A file that a client removes while it has it open becomes .nfs… until it is closed.
//   - With a Tick, changes within one step of the server's clock leave one change attribute.
//   - A local file system is a client without a memory, and with Local set.
//
// # What is not
//
//   - A call is one request. The kernel sends two for some, LOOKUP and GETATTR for an open,
//     and others can come in between.
//   - Opens, delegations and sessions of NFSv4, reply caches, grace periods.
//   - Content is read from the server each time, and written through.
//   - Users and modes: everything belongs to the caller. Links, sockets, pipes.
package simnfs
