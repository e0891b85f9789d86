package mongolock

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// server is the deployment behind a source, with its database.
type server struct {
	database *mongo.Database
	name     string        // of the collection
	own      *mongo.Client // the client to disconnect, nil if it is the caller's
	public   string        // for messages
	timeout  time.Duration
	serial   bool   // Place.BehindSerialisingProxy
	reach    *reach // nil if the client is the caller's

	facts *remote.Facts[facts]
}

func connect(at Place) (*server, error) {
	timeout, err := remote.Timeout(at.Timeout, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	s := &server{timeout: timeout, serial: at.BehindSerialisingProxy, facts: remote.NewFacts[facts]()}
	switch {
	case (at.URL == "") == (at.Collection == nil):
		return nil, remote.URL{}.Invalid("either a URL or a collection is needed")
	case at.Collection != nil:
		s.name, s.public = at.Collection.Name(), "the collection "+at.Collection.Database().Name()+"."+at.Collection.Name()
		s.use(at.Collection.Database().Client(), at.Collection.Database().Name())
		return s, nil
	}
	address, err := parseURL(at.URL)
	if err != nil {
		return nil, err
	}
	opt, err := address.clientOptions()
	if err != nil {
		return nil, err
	}
	if opt.AppName == nil {
		opt.SetAppName("multilock") // for users who list the server's connections
	}
	s.reach = &reach{hosts: len(opt.Hosts), refused: map[string]error{}}
	if s.own, err = mongo.Connect(opt.SetDialer(s.reach)); err != nil {
		return nil, address.Invalid("the driver cannot use it: check the options behind the ?")
	}
	s.name, s.public = address.collection, address.Public
	s.use(s.own, address.database)
	return s, nil
}

// use sets the concerns of all commands. A write without the majority's acknowledgement may be
// rolled back, and with it an acquired lock.
func (s *server) use(client *mongo.Client, database string) {
	journaled := true
	s.database = client.Database(database, options.Database().
		SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journaled}).
		SetReadPreference(readpref.Primary()).SetReadConcern(&readconcern.ReadConcern{}))
}

// disconnect closes the connections, unless they are the caller's.
func (s *server) disconnect() error {
	if s.own == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaving)
	defer cancel()
	return s.own.Disconnect(ctx)
}

// leaving is the time limit for closing a source's connections.
const leaving = 2 * time.Second

// within returns the context of a command with a time limit. It ignores a session in the caller's
// ctx: a lock that was acquired in a transaction would be invisible to other processes, and lost
// with an abort.
func (s *server) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return remote.Outlive(mongo.NewSessionContext(ctx, nil), min(limit, s.timeout))
}

// maxDoubts is the maximum number of times that a command with lost replies is sent.
const maxDoubts = 4

// repeat sends an idempotent command until it is answered. All tries together have one time limit.
func (s *server) repeat(ctx context.Context, limit time.Duration, command func(context.Context) error) error {
	limited, cancel := s.within(ctx, limit)
	defer cancel()
	var err error
	for range maxDoubts {
		if err = command(limited); !inDoubt(err) || limited.Err() != nil {
			break
		}
	}
	return err
}

// command checks the server, and sends an idempotent command. The error names the step and the
// lock.
func (s *server) command(ctx context.Context, op, name string, do func(context.Context, facts) error) error {
	f, err := s.ready(ctx)
	if err != nil {
		return err
	}
	err = s.repeat(ctx, s.timeout, func(ctx context.Context) error { return do(ctx, f) })
	return s.opError(ctx, op, name, err)
}

// collection returns the collection for a kind of documents: locks are in the one that the user
// named, and the others have its name with a suffix.
func (s *server) collection(suffix string) *mongo.Collection {
	return s.database.Collection(s.name + suffix)
}

// The suffixes of the collections' names.
const (
	locksSuffix    = ""
	historySuffix  = ".history"
	groupsSuffix   = ".groups"
	registerSuffix = ".registers"
)

// consistency is what a read has to see.
type consistency int

const (
	// settled reads nothing that can be rolled back, but may miss the latest writes.
	settled consistency = iota
	// newest reads everything that was acknowledged before the read began.
	newest
)

// reading returns the collection for reads. On a standalone server every read is settled and
// newest.
func (s *server) reading(suffix string, f facts, c consistency) *mongo.Collection {
	concern := &readconcern.ReadConcern{}
	switch {
	case !f.replicated:
	case c == newest:
		concern = readconcern.Linearizable()
	default:
		concern = readconcern.Majority()
	}
	return s.database.Collection(s.name+suffix, options.Collection().SetReadConcern(concern))
}

var _ source.Timekeeper = (*Source)(nil)

// Now implements source.Timekeeper with the primary's clock. After a failover another server is the
// primary, so the servers of a set need synchronised clocks.
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	if _, err := s.ready(ctx); err != nil {
		return time.Time{}, err
	}
	return s.now(ctx, source.ClockFresh)
}

// now reads the primary's clock. The times in documents come from it, and ages are computed with it
// alone, because hosts' clocks differ.
func (s *Source) now(ctx context.Context, age time.Duration) (time.Time, error) {
	now, _, err := s.clock.Read(age, func() (time.Time, error) {
		hello, err := s.hello(ctx)
		return hello.LocalTime, err
	})
	return now, s.opError(ctx, "read the server's clock", "", err)
}
