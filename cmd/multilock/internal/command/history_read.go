package command

import (
	"errors"
	"iter"
	"slices"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock/process"
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
	most    int // 0 for all that fit
	kept    []source.Event
	dropped int // of them
	size    int
	over    int // how many did not fit
}

// maxLatest bounds what is kept of events, in bytes of their texts. It is some 75,000
// events. What is made of them takes up to three times as much, and the collector its share:
// together less than 300 MB.
const maxLatest = 48 << 20

// events are those that were kept.
func (l *latest) events() []source.Event { return l.kept[l.dropped:] }

func (l *latest) add(e source.Event) {
	l.kept, l.size = append(l.kept, e), l.size+sizeOf(e)
	for l.most > 0 && len(l.events()) > l.most {
		l.drop()
	}
	for l.size > maxLatest {
		l.drop()
		l.over++
	}
}

// drop lets the first one go. Now and then the others move up: to be appended to somewhere
// else, for ever, would take several times their memory.
func (l *latest) drop() {
	l.size -= sizeOf(l.kept[l.dropped])
	l.kept[l.dropped] = source.Event{} // or its texts stay
	if l.dropped++; l.dropped > len(l.kept)/8 {
		l.kept, l.dropped = slices.Delete(l.kept, 0, l.dropped), 0
	}
}

// sizeOf is about how much memory an event takes.
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
