// Package filesystems tests locks on filesystems other than NFS, which scripts/lab mounts. Without
// scripts/lab all tests are skipped.
package filesystems
