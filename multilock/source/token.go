package source

import "github.com/google/uuid"

// NewToken returns a unique token for an acquisition or an attempt.
func NewToken() string { return uuid.NewString() }

// IsToken reports whether a text has the form of a token.
func IsToken(s string) bool { return len(s) == len(uuid.UUID{}.String()) && uuid.Validate(s) == nil }
