package clitest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lock is what tests read of a lock in the JSON of several commands.
type Lock struct {
	Name, State, Why, Token, Host, User, Command string
	PID                                          int
	TTL                                          float64  `json:"ttl_seconds"`
	Age                                          *float64 `json:"age_seconds"`
}

// Locks are those in what "status --json" printed.
func Locks(t testing.TB, status string) []Lock {
	t.Helper()
	var report struct{ Locks []Lock }
	require.NoError(t, json.Unmarshal([]byte(status), &report))
	return report.Locks
}
