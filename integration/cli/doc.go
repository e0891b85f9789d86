// Package cli tests the multilock binary with sources on servers, all on the loopback interface, and
// with cooking locks. The sources' guarantees are tested in their own packages, and the command line
// with a directory in cmd/multilock; this package tests what only both together can show.
package cli
