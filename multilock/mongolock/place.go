package mongolock

import (
	"net/url"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// DefaultTimeout is the time limit of one command, including the search for a primary. An election
// takes about ten seconds.
const DefaultTimeout = 15 * time.Second

// Place is the collection, and how to connect to it. Either URL or Collection is required.
type Place struct {
	// URL is mongodb://HOST[:PORT][,HOST...]/DATABASE.COLLECTION, or the same with mongodb+srv,
	// with the options of any MongoDB connection string. It may contain a user and password; no
	// message repeats them.
	URL string
	// Collection belongs to a client that the caller has connected, and closes. Its read and write
	// concerns are ignored.
	Collection *mongo.Collection
	// Timeout is the time limit of one command, DefaultTimeout if 0.
	Timeout time.Duration
	// BehindSerialisingProxy asserts that a server which does not update documents in one step
	// (FerretDB 1) receives one command at a time, so that the difference cannot be observed. For
	// tests.
	BehindSerialisingProxy bool
}

// address is a parsed URL.
type address struct {
	remote.URL
	driver     string // the driver's form: the path is only the database
	bare       string // for validation: driver without user and password
	database   string
	collection string
}

// parseURL extracts the collection from a URL. Everything else is parsed by the driver.
func parseURL(text string) (address, error) {
	u, err := remote.CutURL(text, "mongodb://HOST[:PORT]/DATABASE.COLLECTION, or mongodb+srv://...", "mongodb", "mongodb+srv")
	if err != nil {
		return address{}, err
	}
	database, collection, ok := namespace(u.Path)
	if !ok {
		return address{}, u.Invalid("it must name the database and the collection, as in /jobs.locks")
	}
	tail := u.Hosts + "/" + url.PathEscape(database)
	if u.Query != "" {
		tail += "?" + u.Query
	}
	return address{
		URL: u, driver: u.Scheme + "://" + u.Login + tail, bare: u.Scheme + "://" + tail, database: database, collection: collection,
	}, nil
}

// namespace splits DATABASE.COLLECTION at the first dot: only a collection's name can contain a
// dot.
func namespace(path string) (database, collection string, ok bool) {
	name, err := url.PathUnescape(path)
	if err != nil {
		return "", "", false
	}
	database, collection, _ = strings.Cut(name, ".")
	return database, collection, database != "" && collection != "" && !strings.ContainsAny(name, "/\x00$")
}

// clientOptions lets the driver parse the URL. The driver's errors may repeat parts of it; they are
// passed on only for a URL without user and password.
func (a address) clientOptions() (*options.ClientOptions, error) {
	opt := options.Client().ApplyURI(a.driver)
	if opt.Validate() == nil {
		return opt, nil
	}
	err := options.Client().ApplyURI(a.bare).Validate()
	if strings.Contains(a.bare, "?") || err == nil {
		return nil, a.Invalid("the driver cannot use it: check that user and password are percent-encoded, and the options behind the ?")
	}
	return nil, &source.InvalidError{What: "source", Got: a.Public, Why: err.Error(), Err: err}
}
