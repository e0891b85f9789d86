// Package filesystems tries locks on filesystems other than NFS, which scripts/lab mounts.
// Without it, everything here is skipped.
package filesystems
