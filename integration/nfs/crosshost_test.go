package nfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A lock that a process on one host takes is held for the others at the very
// next look, with its holder's name, and free at the very next look after its
// release, although they have cached what was before.
func TestHeldOnOneHostIsSeenOnTheOthers(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		holder := newActor(t, h, p)
		var lookers []remote
		for _, o := range others {
			lookers = append(lookers, newActor(t, o, p))
		}
		for range 3 {
			for _, l := range lookers {
				require.Equal(t, "free", l.must(t, order{Do: "look", Name: "job"}).State)
			}
			token := holder.must(t, order{Do: "acquire", Name: "job", TTL: long}).Token
			for _, l := range lookers {
				refused := l.do(t, order{Do: "try", Name: "job"})
				require.Contains(t, refused.Error, "is held by "+h.name+" pid ")
				require.Equal(t, token, refused.Token)
				require.Equal(t, h.name, refused.Host)
				require.Equal(t, "held", l.must(t, order{Do: "look", Name: "job"}).State)
			}
			holder.must(t, order{Do: "release"})
		}
		p.requireEmpty(t)
	})
}
