package fakecloudshell

import "time"

// Options are for [Start].
type Options struct {
	Scheme       Scheme        // HTTP by default; with HTTPS the certificate is self-signed: see WriteCA
	Latency      time.Duration // of each request, half of it before it is carried out, half after
	Users        []User
	Models       []Model
	Reservations []Reservation
	Policy       Policy
}

// Scheme is how a server is reached.
type Scheme string

// The schemes.
const (
	HTTP  Scheme = "http"
	HTTPS Scheme = "https"
)

// User can log on, and use all reservations.
type User struct {
	Name     string
	Password string
	Admin    bool
}

// Model is a kind of service.
type Model struct {
	Name       string
	AdminOnly  bool // GetServices hides it from other users
	Attributes []string
}

// The reservation mutex, as its convention names things.
const (
	MutexModel     = "Mutex Service"
	OwnerAttribute = "Mutex Owner"
)

// PlainMutex is the model of the convention's second version: it has no owner.
func PlainMutex() Model { return Model{Name: MutexModel, AdminOnly: true} }

// OwnedMutex is the model of the convention's first version: it has an owner.
func OwnedMutex() Model {
	return Model{Name: MutexModel, AdminOnly: true, Attributes: []string{OwnerAttribute}}
}

// Reservation is a place for services; users call it a sandbox.
type Reservation struct {
	ID string
	// Services are there from the start, as in a sandbox made from a blueprint that was saved with them.
	Services []Service
}

// Service is a service in a reservation. Its attributes are not changed once it is there.
type Service struct {
	Model      string
	Alias      string
	Attributes map[string]string
}

// Policy has a field for each thing that differs between servers, or that is not known of the real one.
type Policy struct {
	DeadTokens118           bool          // refuses a dead token in HTTP 200 with code 118, not by HTTP 401
	RemoveQuietly           bool          // removing an alias that is not there succeeds, and removes the others
	CacheFor                time.Duration // of GetReservationDetails: 0 means the 5 s of newer servers, less none
	IgnoreDisableCache      bool          // the cache applies to every call
	IgnoreUnknownAttributes bool          // drops an attribute that the model lacks, instead of refusing the call
	NoEmptyInfo             bool          // leaves ResponseInfo out where it would be empty
	CloseConnections        bool          // after each answer
	Without                 []Method      // this server does not have them
}
