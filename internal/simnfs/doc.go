// Package simnfs is an NFS server and its clients in memory, behind package vfs, for tests
// that decide what happens when.
//
// Nothing in it runs by itself. A [Server] asks the clock that it is given, and a [Client]
// hands each request to its [Transport], which carries it out, or loses its reply, or
// carries it out twice, or later. What a client answers from memory is no request.
//
// # What is modelled
//
// All of it was compared with Linux 6.1's clients of versions 3, 4.1 and 4.2 by programs that
// are drawn (package conform; TestClientsAnswerAsSimulated in integration/nfs). Behind each
// claim is the test that shows it alone, here or on real clients.
//
//   - A client remembers names, absent ones too, as long as the directory's change
//     attribute is the one with which they were true. It asks for that again when what it
//     knows of the directory is older than MinAge, and up to MaxAge if it has found it
//     unchanged. Stat and StatName ask always. (TestAbsentNameIsRememberedUntilTheDirectoryIsAskedFor,
//     TestAbsentNameIsForgottenInTime)
//   - A reply of version 3 tells of the directory, too; one of version 4 does not, so what
//     else is remembered of it goes on being believed. (TestV4LearnsOfTheNameAlone)
//   - Opening a file or directory asks for its attributes (close-to-open). If it is gone,
//     the name is looked up once more, on the server. (TestPresentNameIsEnteredFromMemory)
//   - What is remembered is believed where it is in the way: unlink and rmdir say that a name
//     is absent or of the other kind, mkdir and create that it exists, rename that its source
//     is absent or the target itself. An absent name mkdir, create and rename's target ask
//     for. (TestMkdirAsks, TestBarrierFromACache)
//   - With version 4 a removal reaches whatever has the name by then, file or empty directory.
//     (TestRemovalOfADirectoryThatIsAFileByNow, TestRmdirOfWhatIsAFileByNow)
//   - What a client changes itself goes into its memory; version 4 does not learn the
//     directory's times by it.
//   - A handle is one object for good. Of one that another client removed the server says
//     ESTALE, unless a client of version 4 has the file open; of a directory that this client
//     removed, its kernel says ENOENT. (TestReaderOfWhatAnotherHostRemovedGetsESTALE,
//     TestOwnRemovalLeavesADirectoryWithoutLinks)
//   - A file that a client removes or replaces while it has it open becomes .nfs… until it is
//     closed, and this client removes it no sooner. (TestOpenFileIsRenamedWhenItsOwnHostRemovesIt, TestSillyRename… on real clients)
//   - An append goes to where the client knows the end.
//   - With a Tick, changes within one step of the server's clock leave one change attribute.
//     (TestChangesWithinATickLookLikeOne)
//   - A server with an async export forgets what was done lately. No change attribute comes twice
//     then: Linux adds the time to what it counts. (TestForgetfulServer…, TestAsyncExportForgetsALock)
//   - A server that replaces no directory by a rename, as BeeGFS and SMB.
//     (TestServerThatReplacesNothing)
//   - A local file system is a client without a memory, and with Local set.
//     (TestLocalFilesystemAnswersAsSimulated)
//
// With Forgot, a client may also have forgotten anything, have taken in a listing's entries,
// or say ESTALE where it mostly says ENOENT: real ones do, now and then.
//
// # What is not
//
//   - A call is one request. The kernel sends two for some, LOOKUP and GETATTR for an open,
//     and others can come in between.
//   - Delegations and sessions of NFSv4, and the server's cache of replies: a request that is
//     carried out twice, at once or a while later, or late, or not at all is what they come to.
//     That, how long a server is away, and its grace period, the Transport decides.
//   - Content is read from the server each time, and written through: what is written without
//     O_DSYNC, and not synced, a real client keeps for a while.
//   - A directory that has the name of a file that its client has open is renamed with that
//     name, as by the kernel, and stays when the file is closed.
//   - Users and modes: everything belongs to the caller. Links, sockets, pipes.
package simnfs
