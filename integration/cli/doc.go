// Package cli tests the multilock binary with the sources that need a server: a
// CloudShell and a MongoDB, on the loopback interface, and with cooking locks. What
// the sources guarantee is tested in packages of their own, and the command line with
// a directory in cmd/multilock; here is what only both together can show.
package cli
