package mongo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

func TestGroups(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	groups, err := src.Groups(t.Context())
	require.NoError(t, err)
	require.Empty(t, groups)
	try(t, src, "x", multilock.Options{})
	try(t, src, "y", multilock.Options{})
	require.NoError(t, try(t, l.open(c, "b"), "x", multilock.Options{}).Release(t.Context()))
	groups, err = src.Groups(t.Context())
	require.NoError(t, err)
	require.Equal(t, []source.GroupSummary{{Held: 2}, {Name: "b"}}, groups)
}
