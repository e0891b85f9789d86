package source

import "github.com/google/uuid"

// NewToken names one thing, an acquisition or an attempt, and is never the same twice.
func NewToken() string { return uuid.NewString() }
