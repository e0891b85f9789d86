package cloudshell

import "fmt"

// modelError is the refusal of a service whose model this user does not see. The
// server's words for a model that it does not know are not known.
type modelError struct {
	err  error
	hint string
}

func (m *modelError) Error() string { return m.err.Error() + "; " + m.hint }
func (m *modelError) Unwrap() error { return m.err }

// explainModel adds what helps to the refusal of a service, if that may be about its model.
func (s *Source) explainModel(err error) error {
	if !apiFailure(err) || aliasTaken(err) || !s.isUnseen() {
		return err
	}
	return &modelError{err, s.noModel()}
}

// isUnseen says whether the server was asked for the model, and showed none.
func (s *Source) isUnseen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unseen
}

// noModel says what to do about a model that is not to be seen.
func (s *Source) noModel() string {
	return fmt.Sprintf("this user sees no service model %q: if the server has none, an administrator imports it (https://github.com/multilock/go/blob/main/docs/cloudshell.md has it as a package), or name another one with model= in the URL", s.opt.Model)
}
