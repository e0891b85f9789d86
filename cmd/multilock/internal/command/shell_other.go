//go:build !linux

package command

// callingShell assumes that the parent is the shell that runs the script. In a subshell that is wrong; use
// --pid $$ there.
func callingShell(parent int) int { return parent }

// isWrapper has no information here.
func isWrapper(int) (name string, yes bool) { return "", false }
