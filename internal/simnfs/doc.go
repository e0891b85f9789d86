// Package simnfs is an NFS server and its clients in memory, behind package vfs, for tests that control the
// order of events.
//
// Nothing in it runs by itself. A [Server] uses the clock that it is given, and a [Client] passes each
// request to its [Transport], which executes it, loses its reply, executes it twice, or executes it
// later. What a client answers from its cache is not a request.
//
// # What is modelled
//
// All of it was compared with Linux 6.1's clients of versions 3, 4.1 and 4.2, by randomly drawn programs
// (package conform; TestClientsAnswerAsSimulated in integration/nfs). Each item below names the test that
// shows it in isolation, here or on real clients.
//
//   - A client caches names, including absent ones, as long as the directory's change
//     attribute is unchanged. It requests that attribute again when its data about the directory
//     is older than MinAge, or up to MaxAge if it found the directory unchanged. Stat and StatName
//     always send a request. (TestAbsentNameIsRememberedUntilTheDirectoryIsAskedFor,
//     TestAbsentNameIsForgottenInTime)
//   - A reply of version 3 includes the directory's attributes; one of version 4 does not, so
//     the client continues to use the rest of its cache. (TestV4LearnsOfTheNameAlone)
//   - Opening a file or directory requests its attributes (close-to-open). If it is gone, the
//     name is looked up once more, on the server. (TestPresentNameIsEnteredFromMemory)
//   - A conflicting cached entry decides without a request: unlink and rmdir fail if a name
//     is absent or of the other kind, mkdir and create if it exists, rename if its source is
//     absent; rename does nothing if source and target are one file. An absent name is requested
//     by mkdir, create and the target of rename. (TestMkdirAsks, TestBarrierFromACache)
//   - With version 4 a removal removes whatever has the name by then, file or empty directory.
//     (TestRemovalOfADirectoryThatIsAFileByNow, TestRmdirOfWhatIsAFileByNow)
//   - A client's own changes update its cache; with version 4 they do not update the
//     directory's times.
//   - A handle always refers to one object. If another client removed the object, the server
//     returns ESTALE, unless a version 4 client has the file open. For a directory that this
//     client removed, its kernel returns ENOENT. (TestReaderOfWhatAnotherHostRemovedGetsESTALE,
//     TestOwnRemovalLeavesADirectoryWithoutLinks)
//   - A file that a client removes or replaces while it has it open is renamed to .nfs… until it is
//     closed, and this client cannot remove it before that. (TestOpenFileIsRenamedWhenItsOwnHostRemovesIt,
//     TestSillyRename… on real clients)
//   - An append writes at the end of the file according to the client's cache.
//   - With a Tick, changes within one tick of the server's clock leave the same change attribute.
//     (TestChangesWithinATickLookLikeOne)
//   - A server with an async export loses recent changes in a crash. It reuses no change
//     attribute: Linux adds the time to its counter. (TestForgetfulServer…, TestAsyncExportForgetsALock)
//   - A server whose rename replaces no directory, like BeeGFS and SMB.
//     (TestServerThatReplacesNothing)
//   - A local file system is a client without a cache, and with Local set.
//     (TestLocalFilesystemAnswersAsSimulated)
//
// With Forgot, a client may also have dropped any cached data, have cached entries from a listing, or
// return ESTALE where it mostly returns ENOENT: real clients do so now and then.
//
// # What is not modelled
//
//   - A call is one request. The kernel sends two for some, such as LOOKUP and GETATTR for an open,
//     and other requests can come in between.
//   - Delegations and sessions of NFSv4, and the server's reply cache. In effect, they cause a request
//     to be executed twice, at once or a while later, or late, or never. The Transport decides that,
//     as well as the downtime and the grace period of a server.
//   - Content is read from the server each time, and written through. A real client buffers
//     written data for a while without O_DSYNC or a sync.
//   - A directory that has replaced a file which its client has open is renamed instead of
//     that file, as by the kernel, and stays when the file is closed.
//   - Users and modes: everything belongs to the caller. Links, sockets, pipes.
package simnfs
