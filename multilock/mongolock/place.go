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

// DefaultTimeout is how long one command may take, the search for a primary
// included. An election takes some ten seconds.
const DefaultTimeout = 15 * time.Second

// Place says which collection is used, and how. Either URL or Collection is needed.
type Place struct {
	// URL is mongodb://HOST[:PORT][,HOST...]/DATABASE.COLLECTION, or the same with
	// mongodb+srv, with the options of any MongoDB connection string. The user and
	// password of such a string may be in it; no message repeats them.
	URL string
	// Collection is that of a client which the caller has connected, and keeps. Its
	// read and write concerns do not matter: the package uses its own.
	Collection *mongo.Collection
	// Timeout is how long one command may take, DefaultTimeout if 0.
	Timeout time.Duration
	// BehindSerialisingProxy says that a server which does not update documents in
	// one step (FerretDB 1) gets one command at a time, so that nobody can tell. For
	// tests.
	BehindSerialisingProxy bool
}

// address is a URL taken apart.
type address struct {
	remote.URL
	driver     string // what the driver understands: the path is the database alone
	bare       string // for checking: like driver, without user and password
	database   string
	collection string
}

// parseURL finds the collection in a URL. Everything else is the driver's business.
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

// namespace cuts DATABASE.COLLECTION at the first dot: only the second may have more.
func namespace(path string) (database, collection string, ok bool) {
	name, err := url.PathUnescape(path)
	if err != nil {
		return "", "", false
	}
	database, collection, _ = strings.Cut(name, ".")
	return database, collection, database != "" && collection != "" && !strings.ContainsAny(name, "/\x00$")
}

// clientOptions lets the driver read the URL. What it says about a URL may repeat
// parts of it; that is passed on only of one without a user and a password.
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
