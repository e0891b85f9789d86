package mongolock

import (
	"context"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

const pkg = "mongolock"

// Options select the location and the group of locks. The default group, "", is shared with
// programs that do not know groups.
type Options = remote.Options[Place]

// Source has the locks of one group in one collection, and the results of the jobs that ran under
// them.
type Source struct {
	remote.Member
	*server
	clock  source.Clock
	writer writer
}

var (
	_ source.Ledger      = (*Source)(nil)
	_ source.NameChecker = (*Source)(nil)
)

// Open prepares to use the locks of a group. It does not connect to the server: the first call that
// needs it does. The error is source.ErrInvalid for a location or a group that cannot be used.
func Open(opt Options) (*Source, error) {
	member, err := opt.Join(pkg)
	if err != nil {
		return nil, err
	}
	server, err := connect(opt.Place)
	if err != nil {
		return nil, err
	}
	return &Source{Member: member, server: server}, nil
}

// Close closes the connections of Open. Locks that were acquired through the source stay held, and
// can no longer be renewed or released.
func (s *Source) Close() error { return s.disconnect() }

// Names implements source.Source.
func (s *Source) Names(ctx context.Context) ([]string, error) {
	return s.list(ctx, "list the locks", isHeld())
}

// isHeld matches all locks that are not free, including those of other programs.
func isHeld() bson.E {
	return bson.E{Key: lockedField, Value: bson.D{{Key: "$ne", Value: false}}}
}

// list returns the names of the group's documents that match a filter, sorted.
func (s *Source) list(ctx context.Context, op string, filter ...bson.E) ([]string, error) {
	var names []string
	err := s.command(ctx, op, "", func(ctx context.Context, f facts) error {
		names = nil
		return s.each(ctx, s.reading(locksSuffix, f, settled), s.ofGroup(filter...), func(name string) bool {
			names = append(names, name)
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// each calls visit with the name of every lock that matches a filter, until visit returns false.
func (s *Source) each(ctx context.Context, from *mongo.Collection, filter bson.D, visit func(name string) bool) error {
	found, err := from.Find(ctx, filter, options.Find().SetProjection(bson.D{{Key: idField, Value: 1}}))
	if err != nil {
		return err
	}
	defer found.Close(ctx) //nolint:errcheck // only read from
	for found.Next(ctx) {
		if name, ok := s.nameOf(found.Current.Lookup(idField)); ok && !visit(name) {
			return nil
		}
	}
	return found.Err()
}

// read reads the document of a lock. A missing document is no error: the lock is free.
func (s *Source) read(ctx context.Context, name string, c consistency) (document, error) {
	f, err := s.ready(ctx)
	if err != nil {
		return document{}, err
	}
	var raw bson.Raw
	err = s.repeat(ctx, s.timeout, func(ctx context.Context) (err error) {
		raw, err = s.reading(locksSuffix, f, c).FindOne(ctx, bson.D{{Key: idField, Value: s.id(name)}}).Raw()
		return err
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return document{name: name}, nil
	}
	if err != nil {
		return document{}, err
	}
	return readDocument(name, raw), nil
}
