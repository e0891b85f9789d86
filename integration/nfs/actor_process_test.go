package nfs_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// order is what a test tells an actor, as one line of JSON.
type order struct {
	Do   string
	Name string
	Path string
	// StopAt, with "open", names a file: the process stops itself right before it
	// unlinks one of that name for the first time.
	StopAt string
	TTL    time.Duration
	N      int
}

// answer is the actor's reply to one order.
type answer struct {
	Error  string
	Token  string
	Holder string
	State  string
	Why    string
	Host   string
	PID    int
	Time   time.Duration // locktest.Now when the order was done
}

// performance is what an actor keeps between two orders.
type performance struct {
	src  *fslock.Source
	lock *multilock.Lock
	file *os.File
}

// playActor obeys until its input ends. It then just ends, lock or no lock.
func playActor(in io.Reader, out io.Writer) error {
	var p performance
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		got, err := p.obey(context.Background(), o)
		if err != nil {
			got.Error = err.Error()
		}
		got.Time = locktest.Now()
		if err := answers.Encode(got); err != nil {
			return err
		}
	}
}

func (p *performance) obey(ctx context.Context, o order) (answer, error) {
	switch o.Do {
	case "open":
		return p.open(o)
	case "acquire":
		return p.take(ctx, o, multilock.Acquire)
	case "try":
		return p.take(ctx, o, multilock.TryAcquire)
	case "look":
		return p.look(ctx, o)
	case "verify":
		return answer{}, p.lock.Verify(ctx)
	case "release":
		return answer{}, p.lock.Release(ctx)
	case "await loss":
		<-p.lock.Context().Done()
		return answer{}, context.Cause(p.lock.Context())
	case "keep open":
		return answer{}, p.keepOpen(o.Path)
	case "close":
		return answer{}, p.file.Close()
	case "unlink":
		return answer{}, os.Remove(o.Path)
	case "count":
		return answer{}, p.count(ctx, o)
	}
	return answer{}, errors.New("unknown order " + o.Do)
}

func (p *performance) open(o order) (got answer, err error) {
	opt := fslock.Options{Base: o.Path}
	if o.StopAt != "" {
		opt.FS = faultfs.New(vfs.OS{}, stopBeforeRemoval(o.StopAt))
	}
	p.src, err = fslock.Open(opt)
	if err == nil {
		got.Host, got.PID = p.src.Self().Host, p.src.Self().PID
	}
	return got, err
}

type taker func(context.Context, multilock.Source, string, multilock.Options) (*multilock.Lock, error)

func (p *performance) take(ctx context.Context, o order, take taker) (answer, error) {
	lock, err := take(ctx, p.src, o.Name, multilock.Options{TTL: o.TTL, Poll: 200 * time.Millisecond})
	var held *multilock.HeldError
	if errors.As(err, &held) {
		return sighted(held.Sighting), err
	}
	if err != nil {
		return answer{}, err
	}
	p.lock = lock
	return answer{Token: lock.Record().Token}, nil
}

func (p *performance) look(ctx context.Context, o order) (answer, error) {
	seen, err := multilock.Inspect(ctx, p.src, o.Name, multilock.Patience{})
	return sighted(seen), err
}

func sighted(seen multilock.Sighting) answer {
	return answer{
		Token: seen.Record.Token, Holder: seen.Record.Holder.String(), State: seen.State.String(), Why: seen.Why,
		Host: seen.Record.Holder.Host, PID: seen.Record.Holder.PID,
	}
}

func (p *performance) keepOpen(path string) (err error) {
	p.file, err = os.Open(path)
	return err
}
