package lockgroup_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// The next step begins when the pages are converted, whichever hosts do that.
func ExampleBarrier() {
	src, closeShared := shared()
	defer closeShared()
	pages := []string{"page 1", "page 2"}
	for _, page := range pages {
		go func() {
			_, _ = lockgroup.Once(context.Background(), src, page, lockgroup.OnceOptions{}, func(context.Context) error {
				return nil
			})
		}()
	}

	barrier, err := lockgroup.NewBarrier(src, lockgroup.BarrierOptions{Members: pages})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	report, err := barrier.Wait(ctx)
	if errors.Is(err, lockgroup.ErrNotDone) {
		fmt.Println("failed:", report.Failed, "died:", report.Crashed)
	}
	fmt.Println(report.Done, err)
	// Output: 2 <nil>
}

// At most two are inside at a time, in the whole cluster.
func ExampleAcquireSlot() {
	src, closeShared := shared()
	defer closeShared()

	slot, err := lockgroup.AcquireSlot(context.Background(), src, "licence", 2, multilock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the lock is held:", slot.Context().Err() == nil)
	fmt.Println(slot.Release(context.Background()))
	// Output:
	// the lock is held: true
	// <nil>
}
