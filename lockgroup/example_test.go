package lockgroup_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// shared opens the locks in a directory that all hosts share; here it is a
// temporary one.
func shared() (src *fslock.Source, closeShared func()) {
	base, err := os.MkdirTemp("", "multilock")
	if err != nil {
		log.Fatal(err)
	}
	src, err = fslock.Open(fslock.Options{Base: base})
	if err != nil {
		log.Fatal(err)
	}
	return src, func() {
		_ = src.Close()
		_ = os.RemoveAll(base)
	}
}

// The work runs once, on however many hosts and however often it is called.
func ExampleOnce() {
	src, closeShared := shared()
	defer closeShared()

	for range 3 {
		result, err := lockgroup.Once(context.Background(), src, "convert page 7", lockgroup.OnceOptions{}, func(context.Context) error {
			fmt.Println("converting")
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("done in attempt", result.Attempt)
	}
	// Output:
	// converting
	// done in attempt 1
	// done in attempt 1
	// done in attempt 1
}

// A failure is retried, here or on another host, and is then final.
func ExampleOnce_retries() {
	src, closeShared := shared()
	defer closeShared()

	opt := lockgroup.OnceOptions{Retries: 1}
	for range 2 {
		_, err := lockgroup.Once(context.Background(), src, "convert page 8", opt, func(context.Context) error {
			fmt.Println("converting")
			return errors.New("the page is empty")
		})
		var failed *lockgroup.FailedError
		if errors.As(err, &failed) {
			fmt.Println("failed for good:", failed.Result.Why)
		}
	}
	// Output:
	// converting
	// converting
	// failed for good: the page is empty
	// failed for good: the page is empty
}

// Once per tick across all hosts, by the file server's clock.
func ExampleOnce_every() {
	src, closeShared := shared()
	defer closeShared()

	opt := lockgroup.OnceOptions{Every: lockgroup.EverySpan(1000 * 24 * time.Hour)}
	for range 3 {
		_, err := lockgroup.Once(context.Background(), src, "nightly", opt, func(context.Context) error {
			fmt.Println("at work")
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// at work
}

// The next step begins when the pages are converted, on whichever hosts.
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

// At most two processes hold a slot at a time, in the whole cluster.
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
