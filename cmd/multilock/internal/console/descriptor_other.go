//go:build !unix

package console

import "errors"

// SpeakTo fails: on this system processes do not inherit descriptors by number.
func (e *Env) SpeakTo(int) error { return errors.New("this system has no descriptors to inherit") }
