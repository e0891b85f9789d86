// Package broken has file systems that make the protocol of the lock on a filesystem
// break one of its rules. A test that cannot fail proves nothing: a stress run over one
// of them has to find two holders at once. It is for tests only.
package broken
