package mongolock

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/multilock/source"
)

// facts are what the server says about itself. They are asked for once.
type facts struct {
	version    string
	replicated bool   // a replica set, or a sharded cluster of them
	kind       string // for people
	sharded    bool
	indexed    bool  // the index was asked for
	unindexed  error // why there is none
}

// ready finds out whether the server can hold locks, before anything is entrusted
// to it.
func (s *server) ready(ctx context.Context) (facts, error) {
	return s.facts.Learn(ctx, func() (facts, error) { return s.ask(ctx) })
}

// readyToWrite also sees to the index. It is made by who needs a lock: looking
// leaves no traces.
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
		return facts{}, s.opError(ctx, "ask the server who it is", "", err)
	}
	if build.FerretDB != "" && !s.serial {
		return facts{}, s.refuse("this server is FerretDB " + build.FerretDB + ", which does not update a document in one step, so that two could hold a lock; use MongoDB")
	}
	hello, err := s.hello(ctx)
	if err != nil {
		return facts{}, s.opError(ctx, "ask the server who it is", "", err)
	}
	if err := s.repeat(ctx, s.timeout, s.checkCollection); err != nil {
		return facts{}, s.opError(ctx, "look at the collection", "", err)
	}
	f := hello.facts()
	f.version = build.Version
	return f, nil
}

// greeting is what matters of the reply to hello.
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

// checkCollection refuses collections that cannot keep one document for each name.
// Who may not ask is not kept from locking.
func (s *server) checkCollection(ctx context.Context) error {
	specs, err := s.database.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: s.name}})
	if mayNot(err) {
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

// unfit says why a collection cannot hold locks, "" if it can.
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

// makeIndex makes the index that finds the locks that are held, and the results, of
// a group among many. Nothing is decided by it: a user who may not make one, or a
// server that refuses, only makes looking slower. The same goes for one that does not
// answer: where there are documents already, a replica set waits for all its members
// with that answer, those that are down as well.
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
