package source

import "github.com/google/uuid"

// NewToken names one thing, an acquisition or an attempt, and is never the same twice.
func NewToken() string { return uuid.NewString() }

// IsToken says whether a text has the form of those.
func IsToken(s string) bool { return len(s) == len(uuid.UUID{}.String()) && uuid.Validate(s) == nil }
