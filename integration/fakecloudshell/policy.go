package fakecloudshell

import "time"

// Policy has a field for each thing that differs between servers, or that nobody
// knows about the real one.
type Policy struct {
	// DeadTokens is the answer to a call whose token is unknown, expired or revoked.
	DeadTokens DeadTokens
	// UnknownAliases is what removing a service does that is not there.
	UnknownAliases UnknownAliases
	// FoldAliases makes aliases that differ in case only the same.
	FoldAliases bool
	// CacheFor is for how long GetReservationDetails shows the same, unless the
	// cache is disabled. 0 means the 5 seconds of newer servers. Negative means no
	// cache, as on older ones.
	CacheFor time.Duration
	// IgnoreDisableCache makes the cache apply to every call.
	IgnoreDisableCache bool
	// FreshenCache lets what a call with disableCache has read into the cache.
	FreshenCache bool
	// IgnoreUnknownAttributes drops an attribute that the model does not have,
	// instead of refusing the call.
	IgnoreUnknownAttributes bool
	// MaxValue is how many characters an attribute's value may have; 0 is no limit.
	MaxValue int
	// CutValues shortens a longer value, instead of refusing the call.
	CutValues bool
	// ProtectAdminModels refuses a service of a model that is for administrators
	// only to everybody else.
	ProtectAdminModels bool
	// AnyDomain lets a session see the reservations of other domains than its own.
	AnyDomain bool
	// LogoffEndsCommand makes Logoff of a session that came from a command's token
	// end that token too.
	LogoffEndsCommand bool
	// NoEmptyInfo leaves ResponseInfo out where it would be empty.
	NoEmptyInfo bool
	// LongTokens makes tokens of 900 bytes instead of 24.
	LongTokens bool
	// CloseConnections ends the connection after each answer.
	CloseConnections bool
	// Without are methods that this server does not have. SetServiceName came with
	// 9.3, sandbox data with 9.2.
	Without []Method
}

// DeadTokens is how a server refuses a token.
type DeadTokens int

// The ways to refuse a token. Logon and SecureLogon always use the second.
const (
	Unauthorized DeadTokens = iota // HTTP 401, as newer servers do
	Code118                        // HTTP 200 with Failures.DeadToken
)

// UnknownAliases is what RemoveServicesFromReservation does about an alias that
// is not there.
type UnknownAliases int

// The answers to an unknown alias.
const (
	RemoveNone  UnknownAliases = iota // a failure; nothing is removed
	RemoveRest                        // a failure; what is there is removed
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

// stored is as much of an attribute's value as the server keeps.
func (p Policy) stored(value string) string {
	characters := []rune(value)
	if p.MaxValue == 0 || len(characters) <= p.MaxValue {
		return value
	}
	return string(characters[:p.MaxValue])
}
