// Package strain tells how much this host has to do.
package strain

// Memory is that of the host, in bytes; where this process is in a cgroup with less, what that has.
type Memory struct {
	Total uint64
	// Available is what programs can get without swapping, as far as the system can tell.
	Available uint64
}
