package mongolock_test

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/mongolock"
)

// A service lets each user publish one thing at a time, whichever of its instances gets the
// requests. There is a lock for every user.
func Example() {
	var database *mongo.Database // the service's own

	locks, err := mongolock.Open(mongolock.Options{
		Place: mongolock.Place{Collection: database.Collection("locks")},
		Group: "publishing",
	})
	if err != nil {
		panic(err)
	}
	defer locks.Close()

	publish := func(ctx context.Context, user string) (err error) {
		lock, err := multilock.TryAcquire(ctx, locks, user, multilock.Options{User: user, Command: "publish"})
		if errors.Is(err, multilock.ErrHeld) {
			return fmt.Errorf("one thing at a time: %w", err)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
		return process(lock.Context()) // cancelled if the lock is lost
	}
	_ = publish(context.Background(), "ada")
}

// The same for a request that waits instead of failing.
func Example_wait() {
	locks, err := mongolock.Open(mongolock.Options{
		Place: mongolock.Place{URL: "mongodb://db1.example.org,db2.example.org/shop.locks?replicaSet=rs0"},
		Group: "publishing",
	})
	if err != nil {
		panic(err)
	}
	defer locks.Close()

	err = multilock.Do(context.Background(), locks, "ada", multilock.Options{}, process)
	if err != nil {
		panic(err)
	}
}

// process must not run twice at a time for one user: it resizes the upload, has it checked, and
// shows it.
func process(ctx context.Context) error { return ctx.Err() }
