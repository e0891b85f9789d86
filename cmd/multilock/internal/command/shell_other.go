//go:build !linux

package command

// callingShell takes the parent for the shell whose script is running. Called in
// a subshell that is wrong, and --pid $$ is what helps there.
func callingShell(parent int) int { return parent }

// isWrapper finds out nothing here.
func isWrapper(int) (name string, yes bool) { return "", false }
