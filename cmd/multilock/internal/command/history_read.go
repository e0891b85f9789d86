package command

import (
	"errors"
	"iter"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/source"
)

// toldOf tells a history, and gives what is left out of it to left, in words.
func toldOf(history iter.Seq2[source.Event, error], left func(string)) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) {
		for e, err := range history {
			if out := (*source.LeftOutError)(nil); errors.As(err, &out) {
				left(console.Harmless(out.Error()))
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// latest keeps the last of many events: as many as are wanted, and fit into memory.
type latest struct {
	most   int // 0 for all that fit
	events []source.Event
	size   int
	over   int // how many did not fit
}

// maxLatest bounds what is kept of events, in bytes of their texts. It is some 150,000 events.
const maxLatest = 128 << 20

func (l *latest) add(e source.Event) {
	l.events, l.size = append(l.events, e), l.size+sizeOf(e)
	for l.most > 0 && len(l.events) > l.most {
		l.drop()
	}
	for l.size > maxLatest {
		l.drop()
		l.over++
	}
}

func (l *latest) drop() {
	l.size -= sizeOf(l.events[0])
	l.events[0] = source.Event{} // or its texts stay
	l.events = l.events[1:]
}

// sizeOf is about how much memory an event takes.
func sizeOf(e source.Event) int {
	const itself = 512
	size := itself + len(e.Name) + len(e.Token) + len(e.User) + len(e.Command) + len(e.Why) + len(e.Output) + len(e.Signal) + len(e.By.Host)
	if e.Holder != nil {
		size += itself + len(e.Holder.Command) + len(e.Holder.User) + len(e.Holder.Host)
	}
	return size
}
