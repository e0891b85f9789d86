package faultfs

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
)

// FailAt makes the n-th operation answer err: Before, without having been carried
// out; After, as if its own reply had been lost.
func FailAt(n int, phase Phase, err error) Injector {
	return at(n, phase, func() error { return err })
}

func at(n int, phase Phase, verdict func() error) Injector {
	return func(op Op) error {
		if op.N != n || op.Phase != phase {
			return nil
		}
		return verdict()
	}
}

// Chain asks several injectors in turn until one has a verdict.
func Chain(injectors ...Injector) Injector {
	return func(op Op) error {
		for _, inject := range injectors {
			if err := inject(op); err != nil {
				return err
			}
		}
		return nil
	}
}

// Trace writes a line for each operation once it was carried out: its kind, its
// path, and the error that it answered, if any. There is no number in it: one
// more operation is one more line, and no other line changes.
func Trace(w io.Writer) Injector {
	var mu sync.Mutex
	return func(op Op) error {
		if op.Phase == Before {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		_, err := fmt.Fprintf(w, "%s %s%s\n", op.Kind, op.Path, answer(op.Err))
		return err
	}
}

func answer(err error) string {
	var number syscall.Errno
	switch {
	case err == nil:
		return ""
	case errors.Is(err, io.EOF):
		return " = EOF"
	case errors.As(err, &number):
		return " = " + errorName(number)
	}
	return " = " + err.Error()
}
