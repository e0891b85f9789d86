package fakecloudshell

import "fmt"

// Failure is what a call that fails is answered with, in HTTP 200.
type Failure struct {
	Code    int
	Message string
}

// Error is in the words of the Python clients.
func (f *Failure) Error() string {
	return fmt.Sprintf("CloudShell API error %d: %s", f.Code, f.Message)
}

// Codes that are known. Most failures have the first.
const (
	CodeGeneral       = 100
	CodeUnknownMethod = 101
	CodeNotLoggedOn   = 118
)

// Failures are the answers to what goes wrong. Zero ones get a default. Only
// that of AliasTaken is the real server's text; of most others not even the code
// is known.
type Failures struct {
	AliasTaken         Failure // 100, Service with given alias already exists
	UnknownUser        Failure // 100; so do clients of the real server distinguish it ...
	WrongPassword      Failure // 118; ... from this
	DeadToken          Failure // 118; see Policy.DeadTokens
	UnknownMethod      Failure // 101
	UnknownDomain      Failure // the user has no part in it
	UnknownReservation Failure // there is none in the domain of the session
	UnknownModel       Failure
	UnknownAttribute   Failure
	LongValue          Failure // see Policy.MaxValue
	UnknownAlias       Failure
	ReservationEnded   Failure
	NotPermitted       Failure
}

func (f Failures) withDefaults() Failures {
	for _, d := range []struct {
		failure *Failure
		code    int
		message string
	}{
		{&f.AliasTaken, CodeGeneral, "Service with given alias already exists"},
		{&f.UnknownUser, CodeGeneral, "There is no user with this name"},
		{&f.WrongPassword, CodeNotLoggedOn, "The password is wrong"},
		{&f.DeadToken, CodeNotLoggedOn, "The token is not, or no longer, valid"},
		{&f.UnknownMethod, CodeUnknownMethod, "There is no such command"},
		{&f.UnknownDomain, CodeGeneral, "The user does not belong to this domain"},
		{&f.UnknownReservation, CodeGeneral, "No reservation with this id was found"},
		{&f.UnknownModel, CodeGeneral, "No service model with this name was found"},
		{&f.UnknownAttribute, CodeGeneral, "The service model has no attribute with this name"},
		{&f.LongValue, CodeGeneral, "The value of an attribute is too long"},
		{&f.UnknownAlias, CodeGeneral, "The reservation has no service with this alias"},
		{&f.ReservationEnded, CodeGeneral, "The reservation has ended"},
		{&f.NotPermitted, CodeGeneral, "The user is not permitted to do this"},
	} {
		if *d.failure == (Failure{}) {
			*d.failure = Failure{d.code, d.message}
		}
	}
	return f
}

// invalid is the answer to parameters that no genuine client sends.
func invalid(err error) *Failure {
	return &Failure{CodeGeneral, "the request is not as documented: " + err.Error()}
}
