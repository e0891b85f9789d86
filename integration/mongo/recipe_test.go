package mongo_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
)

// recipe is the lock that many programs have: a field, and an upsert. It knows
// neither owners nor an end.
type recipe struct{ *mongo.Collection }

func (r recipe) lock(ctx context.Context, id string) (bool, error) {
	_, err := r.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "locked", Value: false}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "locked", Value: true}}}}, options.UpdateOne().SetUpsert(true))
	if mongo.IsDuplicateKeyError(err) {
		return false, nil
	}
	return err == nil, err
}

func (r recipe) unlock(ctx context.Context, id string) (bool, error) {
	res, err := r.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}, {Key: "locked", Value: true}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "locked", Value: false}}}})
	if err != nil {
		return false, err
	}
	return res.ModifiedCount == 1, nil
}

func (l *lab) recipe(c *mongo.Collection) recipe {
	return recipe{l.connect().Database(c.Database().Name()).Collection(c.Name())}
}

func TestOursExcludesTheRecipe(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	ours, theirs := l.open(c, ""), l.recipe(c)
	for range 2 { // on a new document, and on one that was there
		lock := try(t, ours, "ada", multilock.Options{})
		got, err := theirs.lock(t.Context(), "ada")
		require.NoError(t, err)
		require.False(t, got)

		freed, err := theirs.unlock(t.Context(), "ada")
		require.NoError(t, err)
		require.False(t, freed, "nobody unlocks what he does not hold")
		require.NoError(t, lock.Verify(t.Context()))

		require.NoError(t, lock.Release(t.Context()))
		got, err = theirs.lock(t.Context(), "ada")
		require.NoError(t, err)
		require.True(t, got)
		freed, err = theirs.unlock(t.Context(), "ada")
		require.NoError(t, err)
		require.True(t, freed)
	}
}
