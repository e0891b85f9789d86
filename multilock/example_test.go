package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// openShared opens the locks in a directory that all hosts share; here it is a temporary one.
func openShared() (src *fslock.Source, closeShared func()) {
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

// Wait for a lock, work under it, and release it.
func Example() {
	src, closeShared := openShared()
	defer closeShared()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel() // it limits the wait, not the lock
	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{TTL: 10 * time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	select {
	case <-lock.Context().Done():
		fmt.Println("stop at once:", context.Cause(lock.Context()))
	default:
		fmt.Println("at work under", lock.Record().Name)
	}
	if err := lock.Release(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("released")
	// Output:
	// at work under nightly
	// released
}

// Do not wait, and report which process holds the lock.
func ExampleTryAcquire() {
	src, closeShared := openShared()
	defer closeShared()
	ctx := context.Background()
	first, err := multilock.TryAcquire(ctx, src, "nightly", multilock.Options{User: "ada", Command: "backup"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mustRelease(first)

	_, err = multilock.TryAcquire(ctx, src, "nightly", multilock.Options{})
	var held *multilock.HeldError
	if errors.As(err, &held) {
		holder := held.Observation.Record.Holder
		fmt.Printf("%s is held by %s, who runs %s\n", held.Name, holder.User, holder.Command)
	}
	// Output: nightly is held by ada, who runs backup
}

// Let Do manage the lock.
func ExampleDo() {
	src, closeShared := openShared()
	defer closeShared()

	err := multilock.Do(context.Background(), src, "nightly", multilock.Options{}, func(ctx context.Context) error {
		fmt.Println("at work, and told to stop if the lock is lost:", ctx.Err() == nil)
		return errors.New("no space left")
	})
	fmt.Println(err)
	// Output:
	// at work, and told to stop if the lock is lost: true
	// no space left
}

// Give a resource that can reject earlier holders a fencing token.
func ExampleLock_Fence() {
	src, closeShared := openShared()
	defer closeShared()
	ctx := context.Background()
	var seen uint64 // stored by the resource
	write := func(fence uint64, text string) {
		if fence < seen {
			fmt.Println("refused:", text)
			return
		}
		seen = fence
		fmt.Println("written:", text)
	}

	earlier, present := drawFence(ctx, src), drawFence(ctx, src)
	write(present, "by the present holder")
	write(earlier, "by an earlier one that woke up late")
	// Output:
	// written: by the present holder
	// refused: by an earlier one that woke up late
}

// mustRelease is for a program that cannot continue if another process may have held its lock.
func mustRelease(lock *multilock.Lock) {
	if err := lock.Release(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// drawFence holds the lock for a moment.
func drawFence(ctx context.Context, src multilock.Source) uint64 {
	lock, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer mustRelease(lock)
	fence, err := lock.Fence(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return fence
}
