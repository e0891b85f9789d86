package nfs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
)

// count adds one to the number in a file, as often as it is told, each time under
// the lock and in steps that would lose a count in company. The file is not on
// the share, so NFS has no part in what it shows. What the lock told goes to a
// history beside it.
func (p *performance) count(ctx context.Context, o order) error {
	events, err := os.OpenFile(o.Path+".events", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer events.Close()
	recorder := locktest.NewRecorder(events, fmt.Sprintf("%s pid %d", p.src.Self().Host, os.Getpid()))
	for range o.N {
		if err := p.countOnce(ctx, o, recorder); err != nil {
			return err
		}
	}
	return nil
}

func (p *performance) countOnce(ctx context.Context, o order, recorder *locktest.Recorder) error {
	start := locktest.Now()
	if _, err := p.take(ctx, o, multilock.Acquire); err != nil {
		return err
	}
	held := locktest.Event{Name: o.Name, Token: p.lock.Record().Token}
	acquired, releasing, released := held, held, held
	acquired.Kind, acquired.Start, acquired.Until = locktest.Acquired, start, locktest.Now()+p.lock.Remaining()
	releasing.Kind, released.Kind = locktest.Releasing, locktest.Released
	err := errors.Join(recorder.Record(acquired), increment(o.Path), recorder.Record(releasing))
	return errors.Join(err, p.lock.Release(ctx), recorder.Record(released))
}

func increment(path string) error {
	number, err := readNumber(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(number+1)), 0o666)
}

func readNumber(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}
