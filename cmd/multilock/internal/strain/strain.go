// Package strain tells how much this host has to do. A container sees its host's figures.
package strain

// Memory is that of the host, in bytes.
type Memory struct {
	Total uint64
	// Available is what programs can get without swapping, as far as the system can tell.
	Available uint64
}
