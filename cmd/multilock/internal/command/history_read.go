package command

import (
	"errors"
	"iter"
	"slices"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// reportLeftOut yields the readable events, and calls left for those that were skipped.
func reportLeftOut(history iter.Seq2[source.Event, error], left func(string)) iter.Seq2[source.Event, error] {
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

// latest keeps the last events, up to a number and a memory limit.
type latest struct {
	most     int  // 0 for no limit
	backward bool // events are added in reverse order
	kept     []source.Event
	dropped  int // of kept
	size     int
	over     int // how many did not fit
}

// maxLatest bounds the bytes kept, about 75,000 events. With everything made from them and the
// garbage collector's overhead, the process stays below 300 MB.
const maxLatest = 48 << 20

// events returns the events in order of time.
func (l *latest) events() []source.Event {
	events := l.kept[l.dropped:]
	if l.backward {
		events = slices.Clone(events)
		slices.Reverse(events)
	}
	return events
}

// full reports whether no earlier event is needed.
func (l *latest) full() bool {
	return l.backward && (l.over > 0 || l.most > 0 && len(l.kept) >= l.most)
}

func (l *latest) add(e source.Event) {
	if l.backward && l.size+sizeOf(e) > maxLatest {
		l.over++
		return
	}
	l.kept, l.size = append(l.kept, e), l.size+sizeOf(e)
	for l.most > 0 && len(l.events()) > l.most {
		l.drop()
	}
	for l.size > maxLatest {
		l.drop()
		l.over++
	}
}

// drop removes the first event. It moves the others only from time to time, and in place, because
// reallocation would take several times their memory.
func (l *latest) drop() {
	l.size -= sizeOf(l.kept[l.dropped])
	l.kept[l.dropped] = source.Event{} // release its strings
	if l.dropped++; l.dropped > len(l.kept)/8 {
		l.kept, l.dropped = slices.Delete(l.kept, 0, l.dropped), 0
	}
}

// sizeOf estimates the memory that an event takes.
func sizeOf(e source.Event) int {
	const itself = 512
	size := itself + len(e.Name) + len(e.Token) + len(e.User) + len(e.Command) + len(e.Why) + len(e.Output) + len(e.Signal) + textsOf(e.By)
	if h := e.Holder; h != nil {
		size += itself + len(h.Command) + len(h.User) + textsOf(h.Identity)
	}
	if e.Chunk != nil {
		const twoNumbers = 16
		size += itself + len(e.Chunk.Returned)*twoNumbers
	}
	return size
}

func textsOf(i process.Identity) int {
	return len(i.Host) + len(i.Machine) + len(i.Boot) + len(i.Namespace)
}
