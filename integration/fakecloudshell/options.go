package fakecloudshell

import "time"

// Options are for [Start].
type Options struct {
	// Scheme is HTTP by default. With HTTPS the server has a certificate that nobody
	// knows: see WriteCA.
	Scheme Scheme
	// Latency is how long each request is under way: half of it before it is carried
	// out, and half before its answer arrives. A server at a real distance takes a
	// second. None by default.
	Latency time.Duration

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

// User is somebody who can log on, and use all reservations.
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

// PlainMutex is the model of the convention as it is: there is no owner.
func PlainMutex() Model { return Model{Name: MutexModel, AdminOnly: true} }

// OwnedMutex is the model of the convention's first version: it has an owner.
func OwnedMutex() Model {
	return Model{Name: MutexModel, AdminOnly: true, Attributes: []string{OwnerAttribute}}
}

// Reservation is a place for services; users call it a sandbox.
type Reservation struct {
	ID string
	// Services are there from the start, as in a sandbox made from a blueprint that
	// was saved with them.
	Services []Service
}

// Service is a service in a reservation. Its attributes are not changed once it is there.
type Service struct {
	Model      string
	Alias      string
	Attributes map[string]string
}

// Policy has a field for each thing that differs between servers, or that nobody
// knows about the real one.
type Policy struct {
	// DeadTokens is the answer to a call whose token is unknown, expired or revoked.
	DeadTokens DeadTokens
	// UnknownAliases is what removing a service does that is not there.
	UnknownAliases UnknownAliases
	// CacheFor is for how long GetReservationDetails shows the same, unless the
	// cache is disabled. 0 means the 5 seconds of newer servers. Negative means no
	// cache, as on older ones.
	CacheFor time.Duration
	// IgnoreDisableCache makes the cache apply to every call.
	IgnoreDisableCache bool
	// IgnoreUnknownAttributes drops an attribute that the model does not have,
	// instead of refusing the call.
	IgnoreUnknownAttributes bool
	// NoEmptyInfo leaves ResponseInfo out where it would be empty.
	NoEmptyInfo bool
	// CloseConnections ends the connection after each answer.
	CloseConnections bool
	// Without are methods that this server does not have.
	Without []Method
}

// DeadTokens is how a server refuses a token.
type DeadTokens int

// The ways to refuse a token. Logon and SecureLogon always use the second.
const (
	Unauthorized DeadTokens = iota // HTTP 401, as newer servers do
	Code118                        // HTTP 200 with code 118
)

// UnknownAliases is what RemoveServicesFromReservation does about an alias that
// is not there.
type UnknownAliases int

// The answers to an unknown alias.
const (
	RemoveNone  UnknownAliases = iota // a failure; nothing is removed
	RemoveQuiet                       // success; what is there is removed
)

// defaultCacheFor is what the help of the Python clients says.
const defaultCacheFor = 5 * time.Second

// cached says whether what was read age ago still counts.
func (p Policy) cached(age time.Duration) bool {
	limit := p.CacheFor
	if limit == 0 {
		limit = defaultCacheFor
	}
	return age < limit
}
