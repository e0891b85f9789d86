package fakecloudshell

import "time"

// Options configure a server.
type Options struct {
	Scheme       Scheme        // default HTTP; HTTPS uses a self-signed certificate, see WriteCA
	Latency      time.Duration // of each request: half before its execution, half after it
	Users        []User
	Models       []Model
	Reservations []Reservation
	Policy       Policy
}

// Scheme is the protocol of a server.
type Scheme string

// The schemes.
const (
	HTTP  Scheme = "http"
	HTTPS Scheme = "https"
)

// User can log on and use all reservations.
type User struct {
	Name     string
	Password string
	Admin    bool
}

// Model is a type of service.
type Model struct {
	Name       string
	AdminOnly  bool // GetServices hides it from other users
	Attributes []string
}

// The names of the reservation mutex in its convention.
const (
	MutexModel     = "Mutex Service"
	OwnerAttribute = "Mutex Owner"
)

// PlainMutex is the model of the convention's second version, without an owner.
func PlainMutex() Model { return Model{Name: MutexModel, AdminOnly: true} }

// OwnedMutex is the model of the convention's first version, with an owner.
func OwnedMutex() Model {
	return Model{Name: MutexModel, AdminOnly: true, Attributes: []string{OwnerAttribute}}
}

// Reservation contains services. Users call it a sandbox.
type Reservation struct {
	ID string
	// Services exist from the start, as in a sandbox made from a blueprint that was saved with them.
	Services []Service
}

// Service is a service in a reservation. Its attributes never change.
type Service struct {
	Model      string
	Alias      string
	Attributes map[string]string
}

// Policy has a field for each behaviour that differs between servers, or is unknown of the real one.
type Policy struct {
	DeadTokens118           bool          // rejects a dead token in HTTP 200 with code 118, not with HTTP 401
	RemoveQuietly           bool          // removing a missing alias succeeds, and the other aliases are removed
	CacheFor                time.Duration // of GetReservationDetails; 0 means 5 s as in newer servers, negative none
	IgnoreDisableCache      bool          // every call uses the cache
	IgnoreUnknownAttributes bool          // drops an attribute that the model lacks instead of rejecting the call
	NoEmptyInfo             bool          // omits an empty ResponseInfo
	CloseConnections        bool          // after each reply
	Without                 []Method      // methods that this server lacks
}
