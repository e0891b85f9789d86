//go:build !unix

package console

import "errors"

// SpeakTo is for systems on which a process inherits descriptors by their numbers.
func (e *Env) SpeakTo(int) error { return errors.New("this system has no descriptors to inherit") }
