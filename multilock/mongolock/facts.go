package mongolock

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/multilock/source"
)

// facts are the properties of the server. They are requested once.
type facts struct {
	version    string
	replicated bool   // a replica set, or a sharded cluster of them
	kind       string // for messages
	sharded    bool
	indexed    bool  // the index was requested
	unindexed  error // why that failed
}

// ready checks whether the server can hold locks, before the first other command.
func (s *server) ready(ctx context.Context) (facts, error) {
	return s.facts.Learn(ctx, func() (facts, error) { return s.ask(ctx) })
}

// readyToWrite also makes the index. Only contenders and Examine call it, because observing leaves
// no traces.
func (s *server) readyToWrite(ctx context.Context) (facts, error) {
	return s.facts.Learn(ctx, func() (facts, error) { return s.ask(ctx) }, func(f *facts) error { return s.makeIndex(ctx, f) })
}

func (s *server) ask(ctx context.Context) (facts, error) {
	var build struct {
		Version  string `bson:"version"`
		FerretDB string `bson:"ferretdbVersion"`
	}
	err := s.repeat(ctx, s.timeout, func(ctx context.Context) error {
		return s.unlessRefused(ctx, func(ctx context.Context) error {
			return s.database.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&build)
		})
	})
	if err != nil {
		return facts{}, s.opError(ctx, "identify the server", "", err)
	}
	if build.FerretDB != "" && !s.serial {
		return facts{}, s.refuse("this server is FerretDB " + build.FerretDB + ", which does not update a document in one step, so that two could hold a lock; use MongoDB")
	}
	hello, err := s.hello(ctx)
	if err != nil {
		return facts{}, s.opError(ctx, "identify the server", "", err)
	}
	if err := s.repeat(ctx, s.timeout, s.checkCollection); err != nil {
		return facts{}, s.opError(ctx, "look at the collection", "", err)
	}
	f := hello.facts()
	f.version = build.Version
	return f, nil
}

// greeting is the relevant part of the reply to hello.
type greeting struct {
	SetName   string    `bson:"setName"`
	Message   string    `bson:"msg"`
	LocalTime time.Time `bson:"localTime"`
}

func (s *server) hello(ctx context.Context) (g greeting, err error) {
	err = s.repeat(ctx, s.timeout, func(ctx context.Context) error {
		return s.database.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&g)
	})
	return g, err
}

func (g greeting) facts() facts {
	switch {
	case g.Message == "isdbgrid":
		return facts{kind: "a sharded cluster", replicated: true, sharded: true}
	case g.SetName != "":
		return facts{kind: fmt.Sprintf("the replica set %q", g.SetName), replicated: true}
	}
	return facts{kind: "a standalone server"}
}

// checkCollection rejects collections that cannot keep one document for each name. A user without
// the privilege to list collections can lock nevertheless.
func (s *server) checkCollection(ctx context.Context) error {
	specs, err := s.database.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: s.name}})
	if isUnauthorized(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, spec := range specs {
		if why := unfit(spec); why != "" {
			return s.refuse(why)
		}
	}
	return nil
}

// unfit returns why a collection cannot hold locks, "" if it can.
func unfit(spec mongo.CollectionSpecification) string {
	if spec.Type != "collection" && spec.Type != "" {
		return "it is a " + spec.Type + "; choose a plain collection"
	}
	if capped, ok := spec.Options.Lookup("capped").BooleanOK(); ok && capped {
		return "the collection is capped, and loses the oldest documents; choose another"
	}
	if _, err := spec.Options.LookupErr("collation"); err == nil {
		return "the collection has a collation, which may take two names for one; choose another"
	}
	return ""
}

func (s *server) refuse(why string) error {
	return &source.InvalidError{What: "source", Got: s.public, Why: why}
}

// makeIndex makes the index for queries of held locks, and of results, by group. Correctness does
// not depend on it: without the privilege, or if the server rejects it, observing is slower. The
// same holds if the server does not answer: in a collection with documents, a replica set waits for
// all its members before it answers, including those that are down.
func (s *server) makeIndex(ctx context.Context, f *facts) error {
	if f.indexed {
		return nil
	}
	keys := bson.D{{Key: groupField, Value: 1}, {Key: lockedField, Value: 1}, {Key: commitsField, Value: 1}}
	err := s.repeat(ctx, s.timeout, func(ctx context.Context) error {
		_, err := s.collection(locksSuffix).Indexes().CreateOne(ctx, mongo.IndexModel{Keys: keys})
		return err
	})
	if unsent(err) || ctx.Err() != nil {
		return s.opError(ctx, "make the index", "", err)
	}
	f.indexed, f.unindexed = true, err
	return nil
}
