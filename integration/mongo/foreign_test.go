package mongo_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

func uniqueOwner() mongo.IndexModel {
	return mongo.IndexModel{Keys: bson.D{{Key: "owner", Value: 1}}, Options: options.Index().SetUnique(true)}
}

// A document of another program is a lock held by an unknown process, whatever it contains, and stays
// unchanged.
func TestForeignDocuments(t *testing.T) {
	held := func(more ...bson.E) bson.D { return append(bson.D{{Key: "v", Value: 1}}, more...) }
	for name, fields := range map[string]bson.D{
		"no field locked":   {{Key: "note", Value: "buy milk"}},
		"the recipe's":      {{Key: "locked", Value: true}},
		"a number":          {{Key: "locked", Value: 1}},
		"null":              {{Key: "locked", Value: nil}},
		"a token, no more":  {{Key: "locked", Value: "abc"}},
		"torn":              {{Key: "locked", Value: "abc"}, {Key: "held", Value: "x"}},
		"no holder":         {{Key: "locked", Value: "abc"}, {Key: "held", Value: held(bson.E{Key: "ttl_ms", Value: 1000}, bson.E{Key: "beats", Value: 1})}},
		"a later format":    {{Key: "locked", Value: "abc"}, {Key: "held", Value: bson.D{{Key: "v", Value: 2}}}},
		"an impossible ttl": {{Key: "locked", Value: "abc"}, {Key: "held", Value: held(bson.E{Key: "ttl_ms", Value: -5}, bson.E{Key: "beats", Value: 1})}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, mongolab.Options{})
			c := l.collection()
			_, err := c.InsertOne(t.Context(), append(bson.D{{Key: "_id", Value: "nightly"}}, fields...))
			require.NoError(t, err)
			before := l.raw(c, "nightly")
			src := l.open(c, "")
			_, err = multilock.TryAcquire(within(t), src, "nightly", multilock.Options{StalePolicy: multilock.StalePolicy{MaxAge: 1}})
			var refused *multilock.HeldError
			require.ErrorAs(t, err, &refused)
			require.NotEmpty(t, refused.Observation.Record.Foreign)
			require.Contains(t, refused.Observation.Why, "--force")
			require.Empty(t, refused.Observation.Record.Token)
			names, err := src.Names(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{"nightly"}, names)
			empty, err := src.Empty(t.Context())
			require.NoError(t, err)
			require.False(t, empty)
			_, err = multilock.Break(within(t), src, "nightly", multilock.BreakOptions{})
			require.ErrorIs(t, err, multilock.ErrHeld)
			require.Equal(t, before, l.raw(c, "nightly"))

			_, err = multilock.Break(within(t), src, "nightly", multilock.BreakOptions{Alive: true})
			if _, lock := before["locked"]; !lock {
				require.ErrorIs(t, err, multilock.ErrInvalid)
				require.Equal(t, before, l.raw(c, "nightly"))
				return
			}
			require.NoError(t, err)
			lock := try(t, src, "nightly", multilock.Options{})
			require.NoError(t, lock.Release(within(t)))
		})
	}
}

// Other fields of a document that is also a lock stay unchanged.
func TestOtherFieldsStay(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	_, err := c.InsertOne(t.Context(), bson.D{{Key: "_id", Value: "ada"}, {Key: "locked", Value: false}, {Key: "mail", Value: "ada@example.org"}})
	require.NoError(t, err)
	src := l.open(c, "")
	for range 2 {
		lock := try(t, src, "ada", multilock.Options{})
		require.NoError(t, lock.Release(within(t)))
		lock = try(t, src, "ada", multilock.Options{})
		_, err = multilock.Break(within(t), src, "ada", multilock.BreakOptions{Alive: true})
		require.NoError(t, err)
		require.ErrorIs(t, lock.Release(within(t)), multilock.ErrLost)
	}
	doc := l.raw(c, "ada")
	require.Equal(t, "ada@example.org", doc["mail"])
	delete(doc, "mail")
	require.Len(t, doc, 3, "a free lock is {_id, locked} and the last broken holder: %v", doc)
}

// A lock that an administrator frees by hand is lost for its holder, and the next holder inherits
// nothing from the old record.
func TestUnlockedByHand(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	c1 := claim(long)
	c1.Job = true
	lease := leased(t, src, "nightly", c1)
	require.NoError(t, lease.MarkJob(within(t), process.Group{PGID: 4711}))
	_, err := c.UpdateByID(t.Context(), "nightly", bson.D{{Key: "$set", Value: bson.D{{Key: "locked", Value: false}}}})
	require.NoError(t, err)
	requireState(t, src, "nightly", multilock.StateFree)
	require.ErrorIs(t, lease.Renew(within(t)), multilock.ErrLost)
	next := try(t, src, "nightly", multilock.ForJob{Options: multilock.Options{TTL: long}})
	require.Zero(t, requireState(t, src, "nightly", multilock.StateHeld).Record.Groups)
	require.ErrorIs(t, lease.Release(within(t)), multilock.ErrLost)
	require.NoError(t, next.Release(within(t)))
}

// A lock is lost if its document is deleted, and the holder learns it.
func TestDocumentIsRemoved(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	src := l.open(c, "")
	lock := try(t, src, "nightly", multilock.Options{})
	_, err := c.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: "nightly"}})
	require.NoError(t, err)
	require.ErrorIs(t, lock.Verify(within(t)), multilock.ErrLost)
	require.ErrorIs(t, lock.Release(within(t)), multilock.ErrLost)
}

// Groups share a collection and nothing else.
func TestGroupsAreApart(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	plain, one, two := l.open(c, ""), l.open(c, "one"), l.open(c, "two")
	lock := try(t, one, "nightly", multilock.Options{TTL: long})
	require.NoError(t, lock.Commit(within(t), result(lock, 0)))
	_, err := one.Publish(t.Context(), []byte("list"))
	require.NoError(t, err)
	require.NoError(t, one.Record(t.Context(), []source.Event{{What: source.EventAcquired, Name: "nightly"}}))
	for _, src := range []*mongolock.Source{plain, two} {
		requireState(t, src, "nightly", multilock.StateFree)
		empty, err := src.Empty(t.Context())
		require.NoError(t, err)
		require.True(t, empty)
		names, err := src.Results(t.Context())
		require.NoError(t, err)
		require.Empty(t, names)
		revision, err := src.Revision(t.Context())
		require.NoError(t, err)
		require.Empty(t, revision)
		events, err := source.Collect(src.History(t.Context(), time.Time{}))
		require.NoError(t, err)
		require.Empty(t, events)
		manifest, err := src.Publish(t.Context(), []byte("other"))
		require.NoError(t, err)
		require.Equal(t, "other", string(manifest))
	}
	empty, err := one.Empty(t.Context())
	require.NoError(t, err)
	require.False(t, empty)
	require.NoError(t, lock.Release(within(t)))
}
