package mongolock

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var _ source.GroupLister = (*Source)(nil)

// Groups implements source.GroupLister: each document of the collection names its group.
func (s *Source) Groups(ctx context.Context) ([]source.GroupSummary, error) {
	held := map[string]int{}
	err := s.command(ctx, "list the lock groups", "", func(ctx context.Context, f facts) error {
		clear(held)
		locks := s.reading(locksSuffix, f, settled)
		for _, filter := range []bson.D{{}, {isHeld()}} { // all groups, and those with held locks
			found, err := locks.Aggregate(ctx, countByGroup(filter))
			if err != nil {
				return err
			}
			defer found.Close(ctx) //nolint:errcheck // only read from
			for found.Next(ctx) {
				name, _ := found.Current.Lookup(idField).StringValueOK() // none for the default group
				count, _ := found.Current.Lookup("count").AsInt64OK()
				held[name] = int(count)
				if len(filter) == 0 {
					held[name] = 0
				}
			}
			if err := found.Err(); err != nil {
				return err
			}
		}
		return nil
	})
	return remote.Summaries(held), err
}

func countByGroup(filter bson.D) bson.A {
	return bson.A{
		bson.D{{Key: "$match", Value: filter}},
		bson.D{{Key: "$group", Value: bson.D{{Key: idField, Value: "$" + groupField}, {Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
	}
}
