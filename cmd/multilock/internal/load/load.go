// Package load reads how busy this host is.
package load

// Memory is the host's, in bytes, or that of this process's cgroup if it has less.
type Memory struct {
	Total uint64
	// Available is the system's estimate of what programs can allocate without swapping.
	Available uint64
}
