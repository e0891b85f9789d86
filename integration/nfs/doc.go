// Package nfs holds nothing but tests: single facts about the lock of package
// fslock on a real Linux NFS server with real NFS clients of versions 3, 4.1 and
// 4.2, with the default caching of all of them.
//
// The tests need the machine of integration/nfslab, and skip without it:
//
//	integration/nfs/run              everything
//	integration/nfs/run -run Barrier one test
//	integration/nfs/run -short       without what takes long
//
// Where the obvious way of doing something is wrong on NFS, its test first shows
// that, and then that the way the lock takes is right. docs/nfs-evidence.md has the list.
package nfs
