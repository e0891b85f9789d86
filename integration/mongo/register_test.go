package mongo_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/mongolock"
	"github.com/multilock/go/multilock/source"
)

func (l *lab) register(place mongolock.Place, name string) *mongolock.Register {
	registers, err := mongolock.OpenRegisters(place)
	require.NoError(l, err)
	l.Cleanup(func() { _ = registers.Close() })
	register, err := registers.Register(name)
	require.NoError(l, err)
	return register
}

func TestRegister(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	place := l.place(l.collection())
	locktest.RunRegister(t, func(_ testing.TB, name string) source.Register { return l.register(place, name) })
}

func TestRegisterOfSomebodyElse(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	c := l.collection()
	documents := c.Database().Collection(c.Name() + ".registers")
	_, err := documents.InsertOne(t.Context(), map[string]any{"_id": "cell", "note": "mine"})
	require.NoError(t, err)
	register := l.register(l.place(c), "cell")
	_, _, err = register.Peek(t.Context())
	require.ErrorIs(t, err, multilock.ErrInvalid)
	_, _, err = register.Swap(t.Context(), []byte("ours"))
	require.ErrorIs(t, err, multilock.ErrInvalid)
	require.Equal(t, bson.M{"_id": "cell", "note": "mine"}, l.raw(documents, "cell"))
	registers, err := mongolock.OpenRegisters(l.place(c))
	require.NoError(t, err)
	defer registers.Close()
	_, err = registers.Register("")
	require.ErrorIs(t, err, multilock.ErrInvalid)
}
