package schedules_test

import (
	"context"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/internal/explore"
	"github.com/multilock/go/internal/explore/locks"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/source"
)

// database is a server in memory with its clients and their sources. The clients are those of the real
// driver, on pipes instead of sockets.
type database struct {
	ledger
	server  *mongolab.Memory
	sources map[string]*mongolock.Source
	clients map[string]*mongo.Client
}

func newDatabase() any {
	return &database{ledger: newLedger(), server: mongolab.NewMemory(), sources: map[string]*mongolock.Source{}, clients: map[string]*mongo.Client{}}
}

func databaseOf(w *explore.World) *database { return w.Facts.(*database) }

// pipes are the connections of a client.
type pipes struct {
	server *mongolab.Memory
	ask    mongolab.Ask
}

func (p pipes) DialContext(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go p.server.Serve(server, p.ask)
	return client, nil
}

// connects opens the actor's source and asks what the server can do.
func connects(a *explore.Actor) {
	d := databaseOf(a.World())
	client, src, err := openDatabase(a.Host, pipes{d.server, a.Ask})
	if err != nil {
		a.World().Violate("prepare: %v", err)
		return
	}
	d.clients[a.Name], d.sources[a.Name] = client, src
	if _, err := src.Contend(context.Background(), "lock", locks.Claim, source.StalePolicy{}); err != nil {
		a.World().Violate("prepare: %v", err)
	}
}

func openDatabase(host string, way pipes) (*mongo.Client, *mongolock.Source, error) {
	self, err := locks.WhoWeAre()
	if err != nil {
		return nil, nil, err
	}
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://memory/?directConnection=true").SetDialer(way))
	if err != nil {
		return nil, nil, err
	}
	src, err := mongolock.Open(mongolock.Options{
		Place: mongolock.Place{Collection: client.Database(mongolab.Played).Collection("locks")}, Self: locks.OnHost(self, host),
	})
	return client, src, err
}

// hasTheDocument reports a violation if a process that trusts its lock is not the one in the lock's
// document.
func hasTheDocument(w *explore.World, a *explore.Actor) string {
	if token := inDocument(w); token != a.Has {
		return a.Name + " trusts its lock, but the document has " + token
	}
	return ""
}

func inDocument(w *explore.World) string {
	token, _ := databaseOf(w).server.Lookup("locks", "lock", "locked").(string)
	return token
}

func inDatabase(during func(*explore.Actor, source.Lease)) func(*explore.Actor) {
	return func(a *explore.Actor) {
		d := databaseOf(a.World())
		defer d.clients[a.Name].Disconnect(context.Background())
		c, err := d.sources[a.Name].Contend(context.Background(), "lock", locks.Claim, source.StalePolicy{})
		if err != nil {
			a.World().Violate("contend: %v", err)
			return
		}
		locks.Owner(hasTheDocument).Contends(a, c, 0, func(lease source.Lease) { during(a, lease) })
	}
}

func onDatabase(during func(*explore.Actor, source.Lease)) *explore.Scenario {
	sc := onServer(newDatabase, connects, inDatabase(during), inDatabase(during))
	for i := range sc.Actors {
		sc.Actors[i].Threads = true
	}
	sc.Owns = hasTheDocument
	return sc
}

func TestExploreMongo(t *testing.T) {
	t.Parallel()
	sc := onDatabase(func(a *explore.Actor, lease source.Lease) { locks.Owner(hasTheDocument).GivesSigns(a, lease, 2) })
	sc.AtEnd = func(w *explore.World) { isFree(w, inDocument(w)) }
	explored(t, sc)
}

func TestExploreMongoLedger(t *testing.T) {
	t.Parallel()
	sc := onDatabase(func(a *explore.Actor, lease source.Lease) { databaseOf(a.World()).commits(a, lease) })
	sc.AtEnd = func(w *explore.World) {
		client, src, err := openDatabase("reader", pipes{databaseOf(w).server, undisturbed})
		if err == nil {
			defer client.Disconnect(context.Background())
		}
		databaseOf(w).compares(w, src, err, "lock")
	}
	explored(t, sc)
}
