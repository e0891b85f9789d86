package mongolock

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/multilock/source"
)

// separator separates group and name in an _id. Neither can contain it.
const separator = "/"

// id returns the _id of a lock. In the default group it is the name.
func (s *Source) id(name string) string {
	if s.Group() == "" {
		return name
	}
	return s.Group() + separator + name
}

// nameOf returns the name of the lock with this _id; ok is false if it cannot be a lock of the
// group.
func (s *Source) nameOf(id bson.RawValue) (name string, ok bool) {
	text, ok := id.StringValueOK()
	if !ok {
		return "", false
	}
	if s.Group() != "" {
		if text, ok = strings.CutPrefix(text, s.Group()+separator); !ok {
			return "", false
		}
	}
	return text, s.CheckName(text) == nil
}

// ofGroup returns the filter for the documents of the group. null also matches documents without
// the field.
func (s *Source) ofGroup(more ...bson.E) bson.D {
	group := bson.E{Key: groupField}
	if s.Group() != "" {
		group.Value = s.Group()
	}
	return append(bson.D{group}, more...)
}

var _ source.Group = (*Source)(nil)

// Empty implements source.Group with one query for a lock that is not free. It sees everything
// that was acknowledged before. All tokens of a group are adjacent in an index, so that their
// absence is determined in one step, and so at one instant. (Without that index the documents of a
// group are read one by one, and so not at one instant: see Examine.)
func (s *Source) Empty(ctx context.Context) (bool, error) {
	empty := false
	err := s.command(ctx, "ask whether the lock group is empty", "", func(ctx context.Context, f facts) error {
		empty = true
		return s.each(ctx, s.reading(locksSuffix, f, newest), s.ofGroup(isHeld()), func(string) bool {
			empty = false
			return false
		})
	})
	return empty && err == nil, err
}

var _ source.Ledger = (*Source)(nil)

// Revision implements source.Ledger: the sum of counters that every commit and every removal
// increments. It needs no clock.
func (s *Source) Revision(ctx context.Context) (string, error) {
	revision := ""
	err := s.command(ctx, "look at the results", "", func(ctx context.Context, f facts) error {
		sum, err := s.reading(locksSuffix, f, settled).Aggregate(ctx, s.sumOfCommits())
		if err != nil {
			return err
		}
		defer sum.Close(ctx) //nolint:errcheck // only read from
		revision = ""        // without documents there is no sum
		if sum.Next(ctx) {
			revision = sum.Current.Lookup("sum").String()
		}
		return sum.Err()
	})
	return revision, err
}

func (s *Source) sumOfCommits() bson.A {
	return bson.A{
		bson.D{{Key: "$match", Value: s.ofGroup(everChanged())}},
		bson.D{{Key: "$group", Value: bson.D{{Key: idField, Value: nil}, {Key: "sum", Value: bson.D{{Key: "$sum", Value: "$" + commitsField}}}}}},
	}
}
