package cloudshell_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// A model without the owner's attribute cannot be used for locks: acquiring fails, and the error says
// what to do. A server that silently drops the attribute is detected, too.
func TestModelWithoutAnOwner(t *testing.T) {
	for name, c := range map[string]struct {
		policy fakecloudshell.Policy
		words  string
	}{
		"refused": {fakecloudshell.Policy{}, `the service model "Mutex Service" with the attribute "Mutex Owner"?`},
		"dropped": {fakecloudshell.Policy{IgnoreUnknownAttributes: true}, "does not keep the owner's attribute"},
	} {
		t.Run(name, func(t *testing.T) {
			opt := serverOptions()
			opt.Models[0], opt.Policy = fakecloudshell.PlainMutex(), c.policy
			l := newLab(t, opt)
			src := l.open(t)
			_, err := multilock.TryAcquire(t.Context(), src, "MUTEX", multilock.Options{})
			require.ErrorContains(t, err, c.words)
			require.NotErrorIs(t, err, multilock.ErrHeld)
			require.NotErrorIs(t, err, multilock.ErrUnsure)
			require.Empty(t, l.aliases())
			findings := map[string]source.Finding{}
			for _, f := range src.Examine(t.Context()) {
				findings[f.Subject] = f
			}
			require.Equal(t, source.SeverityUnusable, findings["service model"].Severity)

			l.put(t, "MUTEX", "") // from a script
			require.Contains(t, requireHeld(t, src, "MUTEX").Why, "script")
		})
	}
}
