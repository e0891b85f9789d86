package mongo_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/mongolock"
)

var _ cooklock.Register = (*mongolock.Register)(nil)

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
	a, b, other := l.register(place, "a"), l.register(place, "a"), l.register(place, "b")
	value, n, err := a.Peek(t.Context())
	require.NoError(t, err)
	require.Nil(t, value)
	require.Zero(t, n)

	old, n, err := a.Swap(t.Context(), []byte("one"))
	require.NoError(t, err)
	require.Nil(t, old)
	require.EqualValues(t, 1, n)
	old, n, err = b.Swap(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "one", string(old))
	require.EqualValues(t, 2, n)
	value, n, err = a.Peek(t.Context())
	require.NoError(t, err)
	require.NotNil(t, value, "no bytes are not nothing")
	require.Empty(t, value)
	require.EqualValues(t, 2, n)
	old, _, err = a.Swap(t.Context(), make([]byte, cooklock.MaxValue))
	require.NoError(t, err)
	require.NotNil(t, old)

	value, _, err = other.Peek(t.Context())
	require.NoError(t, err)
	require.Nil(t, value)
}

// TestSwapsFormOneChain: what hosts that swap at the same time tell is the history of one
// register.
func TestSwapsFormOneChain(t *testing.T) {
	l := newLab(t, mongolab.Options{})
	place := l.place(l.collection())
	const hosts, each = 6, 20
	told := make(chan []locktest.SwapEvent)
	for h := range hosts {
		register := l.register(place, "cell")
		go func() {
			var events []locktest.SwapEvent
			for i := range each {
				value := fmt.Sprintf("%d.%d", h, i)
				events = append(events, locktest.SwapEvent{Op: "begin", Value: value, Time: locktest.Now()})
				old, n, err := register.Swap(within(t), []byte(value))
				events = append(events, locktest.SwapAnswer(value, old, n, err))
			}
			told <- events
		}()
	}
	var events []locktest.SwapEvent
	for range hosts {
		events = append(events, <-told...)
	}
	confirmed, err := locktest.CheckSwaps(events)
	require.NoError(t, err)
	require.Equal(t, hosts*each, confirmed)
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
