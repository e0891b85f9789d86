package mongo_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/multilock/go/multilock"
)

var errCompany = errors.New("somebody else is inside")

func competeOurs(ctx context.Context, src multilock.Source, rounds int, work func() error) error {
	for range rounds {
		err := multilock.Do(ctx, src, "ada", multilock.Options{}, func(context.Context) error { return work() })
		if err != nil {
			return fmt.Errorf("ours: %w", err)
		}
	}
	return nil
}

// compete is what programs with the recipe do: they ask again and again.
func (r recipe) compete(ctx context.Context, rounds int, work func() error) error {
	for done := 0; done < rounds; {
		got, err := r.lock(ctx, "ada")
		if err != nil {
			return fmt.Errorf("theirs: %w", err)
		}
		if !got {
			runtime.Gosched()
			continue
		}
		done++
		if err := work(); err != nil {
			return fmt.Errorf("theirs: %w", err)
		}
		if freed, err := r.unlock(ctx, "ada"); err != nil || !freed {
			return fmt.Errorf("theirs: unlocked: %t, %w", freed, err)
		}
	}
	return nil
}
