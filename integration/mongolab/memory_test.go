package mongolab_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/mongolab"
)

type inMemory struct{ server *mongolab.Memory }

func (d inMemory) DialContext(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go d.server.Serve(server, func(_, _ string, _ bool, execute func() error) error { return execute() })
	return client, nil
}

// step makes a random request of a holder or contender, and returns a description of the reply.
func step(t *testing.T, locks *mongo.Collection, id string, random *rand.Rand) string {
	token, n := fmt.Sprint("token", random.IntN(2)), int64(random.IntN(3))
	mine := bson.D{{Key: "_id", Value: id}, {Key: "locked", Value: token}}
	beat := bson.E{Key: "$inc", Value: bson.D{{Key: "held.beats", Value: int64(1)}, {Key: "fence", Value: int64(1)}}}
	seen := bson.E{Key: "$currentDate", Value: bson.D{{Key: "seen", Value: true}}}
	update := func(filter, change bson.D, opt ...options.Lister[options.UpdateOneOptions]) string {
		result, err := locks.UpdateOne(t.Context(), filter, change, opt...)
		if err != nil {
			return fmt.Sprint("duplicate: ", mongo.IsDuplicateKeyError(err))
		}
		return fmt.Sprintln(result.MatchedCount, result.UpsertedCount, result.UpsertedID)
	}
	switch random.IntN(7) {
	case 0, 1:
		free := bson.D{{Key: "_id", Value: id}, {Key: "locked", Value: false}}
		set := bson.D{{Key: "locked", Value: token}, {Key: "held.beats", Value: int64(1)}, {Key: "held.step", Value: int64(0)}}
		return update(free, bson.D{{Key: "$set", Value: set}, {Key: "$unset", Value: bson.D{{Key: "held.groups", Value: ""}}}, seen}, options.UpdateOne().SetUpsert(true))
	case 2:
		return update(mine, bson.D{beat, seen})
	case 3:
		set := bson.D{{Key: "result", Value: bson.D{{Key: "n", Value: n}}}, {Key: "held.step", Value: n + 1}}
		return update(append(mine, bson.E{Key: "held.step", Value: n}), bson.D{{Key: "$set", Value: set}, {Key: "$inc", Value: bson.D{{Key: "commits", Value: int64(1)}}}})
	case 4:
		gone := bson.D{{Key: "held", Value: ""}, {Key: "seen", Value: ""}}
		return update(mine, bson.D{{Key: "$set", Value: bson.D{{Key: "locked", Value: false}, {Key: "broken", Value: token}}}, {Key: "$unset", Value: gone}})
	case 5:
		return shown(t, locks.FindOneAndUpdate(t.Context(), mine, bson.D{beat, seen}, options.FindOneAndUpdate().SetReturnDocument(options.After)))
	}
	return shown(t, locks.FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}))
}

// shown formats a document independently of its field order and timestamp.
func shown(t *testing.T, found *mongo.SingleResult) string {
	var document map[string]any
	err := found.Decode(&document)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return "nothing"
	}
	require.NoError(t, err)
	if _, dated := document["seen"].(bson.DateTime); dated {
		document["seen"] = "a time"
	}
	return fmt.Sprint(document)
}

// The server in memory and an independent implementation give the same replies to random programs.
func TestMemoryAnswersAsServer(t *testing.T) {
	t.Parallel()
	lab := mongolab.Start(t, mongolab.Options{})
	real, err := mongo.Connect(options.Client().ApplyURI(lab.URI()))
	require.NoError(t, err)
	memory, err := mongo.Connect(options.Client().ApplyURI("mongodb://memory/?directConnection=true").SetDialer(inMemory{mongolab.NewMemory()}))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, memory.Disconnect(context.Background()))
		require.NoError(t, real.Disconnect(context.Background()))
	})
	for seed := range uint64(60) {
		id := fmt.Sprint("lock", seed)
		ours, theirs := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // to be repeated
		for n := range 12 {
			answer := step(t, real.Database(lab.Database()).Collection("locks"), id, theirs)
			require.Equal(t, answer, step(t, memory.Database(mongolab.Played).Collection("locks"), id, ours), "program %d, request %d", seed, n)
		}
	}
}
