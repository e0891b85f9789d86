package lockgroup

import (
	"context"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/source"
)

// listener hears of locks that may have become free. Its subscription ends when
// the group's directory is replaced, and there is none before there is a group:
// so it is renewed now and then.
type listener struct {
	src     source.Group
	due     time.Time
	pause   time.Duration
	channel <-chan struct{}
	stop    func()
}

// A renewal costs a request or two.
const (
	firstRenewal = time.Second
	maxRenewal   = 30 * time.Second
)

// news is the channel on which news arrive, nil if there is none.
func (l *listener) news(ctx context.Context) <-chan struct{} {
	if time.Now().Before(l.due) {
		return l.channel
	}
	l.close()
	got, err := bounded.Call(ctx, func(context.Context) (subscription, error) {
		channel, stop := l.src.Wake()
		return subscription{channel, stop}, nil
	})
	if err == nil {
		l.channel, l.stop = got.channel, got.stop
	}
	l.pause = min(max(2*l.pause, firstRenewal), maxRenewal)
	l.due = time.Now().Add(l.pause)
	return l.channel
}

type subscription struct {
	channel <-chan struct{}
	stop    func()
}

func (l *listener) close() {
	if l.stop != nil {
		l.stop()
	}
	l.channel, l.stop = nil, nil
}
