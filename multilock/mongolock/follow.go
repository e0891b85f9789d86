package mongolock

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/source"
)

// follower reads the pages of a history one after another.
type follower struct {
	src   *Source
	since time.Time
	page  int64 // the current page, 0 before the first
	read  int   // number of its events that were read
}

// Follow implements source.Journal.
func (s *Source) Follow(since time.Time) source.Follower {
	return &follower{src: s, since: since}
}

// Next implements source.Follower. If there are no new events, it takes one request.
func (f *follower) Next(ctx context.Context) ([]source.Event, error) {
	for {
		found, err := f.find(ctx)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if events := f.take(found); len(events) > 0 {
			return events, nil
		}
	}
}

// find returns the first page with new events: the current one if it has grown, or a later one.
func (f *follower) find(ctx context.Context) (page, error) {
	filter := f.src.pagesFrom(f.page + 1)
	switch {
	case f.page == 0: // the server skips old pages
		filter = append(filter, bson.E{Key: lastField, Value: bson.D{{Key: "$gte", Value: f.since.Truncate(time.Millisecond)}}})
	case f.read < pageSize: // it may still grow, and no later one exists before it is full
		filter = bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: idField, Value: f.src.pageID(f.page)}, {Key: countField, Value: bson.D{{Key: "$gt", Value: f.read}}}},
			filter,
		}}}
	}
	first := options.FindOne().SetSort(bson.D{{Key: idField, Value: 1}})
	var found bson.Raw
	err := f.src.command(ctx, "follow the history", "", func(ctx context.Context, facts facts) (err error) {
		found, err = f.src.reading(historySuffix, facts, settled).FindOne(ctx, filter, first).Raw()
		return err
	})
	return readPage(found), err
}

// take records how far the history was read. If the count of a page differs from the number of its
// events, another program wrote it: the count decides whether there is more.
func (f *follower) take(found page) []source.Event {
	number, skip := f.src.pageNumber(found.id), f.read
	if number != f.page {
		skip = 0
	}
	f.page, f.read = number, max(len(found.events), int(found.count))
	return found.since(skip, f.since)
}

// Close implements source.Follower.
func (f *follower) Close() error { return nil }
