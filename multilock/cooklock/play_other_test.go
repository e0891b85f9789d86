//go:build !linux

package cooklock_test

import "errors"

func play(string) error { return errors.New("only Linux has roles") }
