// Package load reads the load and the memory of this host.
package load

// Memory is the host's memory in bytes, or that of this process's cgroup if that is less.
type Memory struct {
	Total uint64
	// Available is the system's estimate of what programs can allocate without swapping.
	Available uint64
}
