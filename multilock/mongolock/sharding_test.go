package mongolock

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/multilock/go/multilock/source"
)

func rawOf(t *testing.T, fields ...string) bson.Raw {
	t.Helper()
	key := bson.D{}
	for _, name := range fields {
		key = append(key, bson.E{Key: name, Value: 1})
	}
	text, err := bson.Marshal(key)
	require.NoError(t, err)
	return text
}

// The worst index is reported: one with a time of a held lock, then any other.
func TestTTLIndex(t *testing.T) {
	index := func(seconds int32, fields ...string) mongo.IndexSpecification {
		i := mongo.IndexSpecification{Name: fields[0] + "_1", KeysDocument: rawOf(t, fields...)}
		if seconds > 0 {
			i.ExpireAfterSeconds = &seconds
		}
		return i
	}
	ours := index(0, "group", "locked", "commits")
	for _, test := range []struct {
		specs []mongo.IndexSpecification
		err   error
		want  source.Severity
		text  string
	}{
		{[]mongo.IndexSpecification{index(0, "_id"), ours}, nil, source.SeverityFine, "none: nothing removes locks"},
		{[]mongo.IndexSpecification{ours, index(60, "result.end")}, nil, source.SeverityWarning, `"result.end_1" removes documents 60 s after the time in result.end: results and fencing`},
		{[]mongo.IndexSpecification{index(60, "seen"), index(60, "x")}, nil, source.SeverityUnusable, "seen: also those of locks that are held"},
		{[]mongo.IndexSpecification{index(60, "x"), index(60, "acquired")}, nil, source.SeverityUnusable, "in acquired"},
		{nil, errors.New("not authorized"), source.SeverityWarning, "cannot be listed: not authorized"},
	} {
		f := findExpiry(test.specs, test.err)
		require.Equal(t, test.want, f.Severity, f.Text)
		require.Contains(t, f.Text, test.text)
		require.Equal(t, test.want != source.SeverityFine, f.Advice != "")
	}
}

func TestShardKey(t *testing.T) {
	for _, test := range []struct {
		key  bson.Raw
		err  error
		want source.Severity
	}{
		{nil, nil, source.SeverityFine},
		{rawOf(t, "_id"), nil, source.SeverityFine},
		{rawOf(t, "group", "_id"), nil, source.SeverityUnusable},
		{rawOf(t, "tenant"), nil, source.SeverityUnusable},
		{nil, errors.New("not authorized on config"), source.SeverityWarning},
	} {
		f := findSharding(test.key, test.err)
		require.Equal(t, test.want, f.Severity, f.Text)
		require.Equal(t, test.want != source.SeverityFine, f.Advice != "")
	}
}

// The source fails at once only if all hosts refuse the connection, and none was ever reached.
func TestReach(t *testing.T) {
	refusal := refuse(t)
	over := func(all <-chan struct{}) bool {
		select {
		case <-all:
			return true
		default:
			return false
		}
	}
	r := &reach{hosts: 2, refused: map[string]error{}}
	r.note("a", refusal)
	all, done := r.wait()
	require.False(t, over(all), "one of two")
	r.note("b", errors.New("timeout"))
	require.False(t, over(all))
	r.note("b", refusal)
	require.True(t, over(all))
	require.Contains(t, r.errors(), "a: ")
	done()
	all, done = r.wait()
	require.False(t, over(all), "they are asked again")
	r.note("a", nil)
	r.note("a", refusal)
	r.note("b", refusal)
	require.False(t, over(all), "who was there may come back")
	done()
}

// refuse is the error of a host on which no server listens.
func refuse(t *testing.T) error {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	_, err = net.Dial("tcp", listener.Addr().String())
	require.Error(t, err)
	return err
}
