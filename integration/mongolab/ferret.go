package mongolab

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"sync"

	"github.com/FerretDB/FerretDB/ferretdb"
)

// creating is held while a FerretDB is made, because that writes to a variable of
// its package, whatever the configuration is.
var creating sync.Mutex

// embedded is a FerretDB in this process.
type embedded struct {
	address string
	cancel  context.CancelFunc
	ended   chan struct{}
}

// embed starts a FerretDB with its data in a directory that exists. Its other mode,
// in memory, hangs at the first update of a document that is there.
func embed(dir string) (*embedded, error) {
	data := url.URL{Scheme: "file", OmitHost: true, Path: dir + "/"}
	creating.Lock()
	db, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Handler:   "sqlite",
		SQLiteURL: data.String(),
		Logger:    slog.New(slog.DiscardHandler),
	})
	creating.Unlock()
	if err != nil {
		return nil, fmt.Errorf("start FerretDB in %s: %w", dir, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &embedded{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		_ = db.Run(ctx) // it never says anything
	}()
	uri, err := url.Parse(db.MongoDBURI()) // waits until it listens
	if err != nil {
		e.stop()
		return nil, fmt.Errorf("the address of FerretDB: %w", err)
	}
	e.address = uri.Host
	return e, nil
}

// stop ends it. The data stays.
func (e *embedded) stop() {
	e.cancel()
	<-e.ended
}
