// Package soak holds no code but one long test: processes on the hosts of a real
// NFS cluster take locks in turns while processes, hosts, the network, the server
// and its clock fail at random. README.md tells how to run it and what it shows.
package soak
