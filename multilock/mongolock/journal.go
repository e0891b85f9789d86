package mongolock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// The history of a group is a series of pages, documents of the collection COLLECTION.history that
// are numbered from 1. All hosts append their events to the last page; when it is full, the next
// page is started. The server serialises the updates of a document, so the events have one order,
// which never changes: a follower only needs to remember its position.

const (
	eventsField = "events"
	countField  = "n"    // the number of its events
	lastField   = "last" // the time of its latest event, by the writer's clock
	touchField  = "at"   // when it was last written, by the server's clock
)

// pageSize is the number of events after which a page is full. A page is read as a whole.
const pageSize = 64

// page is a document of the history.
type page struct {
	id     string
	count  int64 // the page's own count of its events
	events []bson.RawValue
}

// readPage never fails: an unreadable page has no events.
func readPage(raw bson.Raw) page {
	var p page
	p.id, _ = raw.Lookup(idField).StringValueOK()
	p.count, _ = raw.Lookup(countField).AsInt64OK()
	if events, ok := raw.Lookup(eventsField).ArrayOK(); ok {
		p.events, _ = events.Values()
	}
	return p
}

// writer remembers the last page.
type writer struct {
	mu   sync.Mutex
	page int64
	used time.Time
}

// remembered is how long the number of the last page is trusted. Later it is read again: pages that
// have filled up since may have been removed, and must not be created again.
const remembered = time.Minute

var _ source.Journal = (*Source)(nil)

// Record implements source.Journal. An event whose reply is lost is written again, and may be
// recorded twice.
func (s *Source) Record(ctx context.Context, events []source.Event) error {
	if len(events) == 0 {
		return nil
	}
	if _, err := s.ready(ctx); err != nil {
		return err
	}
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	for chunk := range slices.Chunk(events, pageSize) {
		if err := s.append(ctx, chunk); err != nil {
			return s.opError(ctx, "write the history", chunk[0].Name, err)
		}
	}
	return nil
}

// append adds events to the last page.
func (s *Source) append(ctx context.Context, events []source.Event) error {
	update, err := addition(events)
	if err != nil {
		return err
	}
	doubts := 0
	for {
		number, err := s.lastPage(ctx)
		if err == nil {
			err = s.addTo(ctx, number, update)
		}
		switch {
		case err == nil:
			s.writer.used = time.Now()
			return nil
		case taken(err):
			s.writer.page, s.writer.used = number+1, time.Now() // it is full
		case inDoubt(err) && doubts < maxDoubts:
			doubts++
		default:
			return err
		}
		if over := context.Cause(ctx); over != nil {
			return over
		}
	}
}

// addition returns the update that adds events to a page.
func addition(events []source.Event) (bson.D, error) {
	var list bson.A
	for _, e := range events {
		document, err := toBSON(e.Bounded())
		if err != nil {
			return nil, err
		}
		list = append(list, document)
	}
	return bson.D{
		{Key: "$push", Value: bson.D{{Key: eventsField, Value: bson.D{{Key: "$each", Value: list}}}}},
		{Key: "$inc", Value: bson.D{{Key: countField, Value: int64(len(events))}}},
		{Key: "$max", Value: bson.D{{Key: lastField, Value: remote.Latest(events)}}},
		{Key: "$currentDate", Value: bson.D{{Key: touchField, Value: true}}},
	}, nil
}

// addTo adds to a page that is not full, or creates it. If it is full, the filter does not match,
// and the upsert fails with a duplicate key; if another process has created it at the same moment,
// the upsert fails, too, and the second update matches.
func (s *Source) addTo(ctx context.Context, number int64, update bson.D) error {
	limited, cancel := s.within(ctx, s.timeout)
	defer cancel()
	history := s.collection(historySuffix)
	filter := bson.D{{Key: idField, Value: s.pageID(number)}, {Key: countField, Value: bson.D{{Key: "$lt", Value: int64(pageSize)}}}}
	_, err := history.UpdateOne(limited, filter, update, options.UpdateOne().SetUpsert(true))
	if !taken(err) {
		return err
	}
	added, again := history.UpdateOne(limited, filter, update)
	if again != nil {
		return again
	}
	if added.MatchedCount == 0 {
		return err
	}
	return nil
}

// lastPage returns the number of the last page, as far as is known.
func (s *Source) lastPage(ctx context.Context) (int64, error) {
	w := &s.writer
	if w.page > 0 && time.Since(w.used) < remembered {
		return w.page, nil
	}
	last := options.FindOne().SetSort(bson.D{{Key: idField, Value: -1}}).SetProjection(bson.D{{Key: idField, Value: 1}})
	var found bson.Raw
	err := s.repeat(ctx, s.timeout, func(ctx context.Context) (err error) {
		found, err = s.collection(historySuffix).FindOne(ctx, s.pagesFrom(1), last).Raw()
		return err
	})
	if err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
		return 0, err
	}
	w.page = max(s.pageNumber(readPage(found).id), 1)
	return w.page, nil
}

// pageID sorts like the numbers.
func (s *Source) pageID(number int64) string {
	return fmt.Sprintf("%s%s%012d", s.Group(), separator, number)
}

func (s *Source) pageNumber(id string) int64 {
	number, err := strconv.ParseInt(strings.TrimPrefix(id, s.Group()+separator), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// pagesFrom returns the filter for the pages of the group from a number on. A colon sorts after all
// digits. The regular expression excludes documents that sort among them but have no number.
func (s *Source) pagesFrom(number int64) bson.D {
	return bson.D{{Key: idField, Value: bson.D{
		{Key: "$gte", Value: s.pageID(number)}, {Key: "$lt", Value: s.Group() + separator + ":"},
		{Key: "$regex", Value: "^" + regexp.QuoteMeta(s.Group()+separator) + "[0-9]+$"},
	}}}
}

// History implements source.Journal, oldest first. It reads one page after another.
func (s *Source) History(ctx context.Context, since time.Time) iter.Seq2[source.Event, error] {
	pages := s.Follow(since)
	return remote.InOrder(func() ([]source.Event, error) { return pages.Next(ctx) })
}

// since returns the page's events after the first skip, from a moment on. Unreadable events are
// left out.
func (p page) since(skip int, moment time.Time) []source.Event {
	var events []source.Event
	for _, value := range p.events[min(skip, len(p.events)):] {
		raw, _ := value.DocumentOK()
		var e source.Event
		if fromBSON(raw, &e) == nil && !e.Time.Before(moment) {
			events = append(events, e)
		}
	}
	return events
}
