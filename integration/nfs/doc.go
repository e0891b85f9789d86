// Package nfs contains only tests: single facts about the lock of package fslock on a real Linux
// NFS server with real NFS clients of versions 3, 4.1 and 4.2, all with their default caching.
//
// The tests need the machine of integration/nfslab, and skip without it:
//
//	integration/nfs/run              everything
//	integration/nfs/run -run Barrier one test
//	integration/nfs/run -short       without slow tests
//
// Where the obvious way of doing something is wrong on NFS, its test first shows that, and then
// that the lock's way is right. docs/nfs-evidence.md has the list.
package nfs
