package s3lock_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/fakes3"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/s3lock"
	"github.com/multilock/go/multilock/source"
)

// open opens the locks of a store. Credentials are not checked.
func open(t testing.TB, endpoint string, timeout time.Duration) *s3lock.Source {
	t.Helper()
	src, err := s3lock.Open(s3lock.Options{Place: s3lock.Place{URL: "s3://bucket/jobs?endpoint=" + endpoint, Timeout: timeout}, Group: "night"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	return src
}

func TestMain(m *testing.M) {
	clearCredentials()
	m.Run()
}

// tested returns a store that has passed the test.
func tested() *fakes3.Store {
	store := fakes3.New()
	store.Put("jobs/passed", "passed")
	return store
}

// TestConformance runs the tests that every source must pass.
func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Run(t, locktest.Fixture{
		Fences: true, Marks: true, Deaths: true, TTL: 2 * time.Second,
		Odd:     []string{"=", "+", "==20", "a+", strings.Repeat("+", 250)},
		Refused: []string{"a/b", "nul\x00byte", "\xff\xfe not utf-8", strings.Repeat("+", 400)},
		Place: func(t testing.TB) func() source.Source {
			endpoint := tested().Serve(t, nil)
			return func() source.Source { return open(t, endpoint, 0) }
		},
	})
	endpoint := tested().Serve(t, nil)
	locktest.RunRegister(t, func(t testing.TB, name string) source.Register {
		r, err := open(t, endpoint, 0).Register(name)
		require.NoError(t, err)
		return r
	})
}

// TestConformanceWithFaults: the same while one request of nine meets a fault.
func TestConformanceWithFaults(t *testing.T) {
	t.Parallel()
	locktest.Run(t, locktest.Fixture{
		Fences: true, Marks: true, Deaths: true, TTL: 3 * time.Second, Distant: true,
		Place: func(t testing.TB) func() source.Source {
			var n atomic.Int64
			outcomes := []fakes3.Outcome{fakes3.Lost, fakes3.Dropped, fakes3.Repeated, fakes3.Busy}
			endpoint := tested().Serve(t, func(r *http.Request) fakes3.Outcome {
				i := n.Add(1)
				if i%9 > 0 {
					return fakes3.Answered
				}
				return outcomes[int(i/9)%len(outcomes)]
			})
			return func() source.Source { return open(t, endpoint, 0) }
		},
	})
}

// fault hits some requests of a bench, one after the other.
type fault struct {
	outcome  fakes3.Outcome
	n, most  int64
	i        atomic.Int64
	on, done atomic.Bool
}

func (f *fault) fate(r *http.Request) fakes3.Outcome {
	if !f.on.Load() {
		return fakes3.Answered
	}
	if i := f.i.Add(1) - 1; i < f.n || i >= f.n+f.most {
		return fakes3.Answered
	}
	f.done.Store(true)
	if f.outcome == fakes3.Conflict && r.Method != http.MethodPut {
		return fakes3.Busy
	}
	return f.outcome
}

var long = flag.Bool("long", false, "also three faults in a row")

// No fault at any request of an operation changes its outcome, nor does a request that arrives late.
func TestFaultAtEveryRequest(t *testing.T) {
	t.Parallel()
	operations := locktest.Operations("first acquire", "acquire", "be refused", "renew", "release", "break", "force", "take over", "commit", "commit again", "forget",
		"mark the job", "fence", "learn the outcome", "publish", "retract", "record", "read")
	operations = append(operations, locktest.Swapping(func(b *locktest.Bench) source.Register {
		register, err := b.Struck.(source.Registrar).Register("cell")
		require.NoError(b, err)
		return register
	}))
	names := map[fakes3.Outcome]string{
		fakes3.Dropped: "dropped", fakes3.Lost: "lost", fakes3.Late: "late", fakes3.Repeated: "repeated", fakes3.Busy: "busy", fakes3.Conflict: "conflict",
	}
	for outcome, name := range names {
		for _, most := range []int64{1, 3} {
			if most > 1 && !*long {
				continue
			}
			for _, op := range operations {
				t.Run(fmt.Sprint(op.Name, "/", name, "/", most), func(t *testing.T) {
					t.Parallel()
					op.Sweep(t, func(n int) *locktest.Bench { return bench(t, &fault{outcome: outcome, most: most, n: int64(n)}) })
				})
			}
		}
	}
}

func bench(t testing.TB, f *fault) *locktest.Bench {
	store := tested()
	self, err := process.Self()
	require.NoError(t, err)
	self.Start++ // no such process
	claim := source.Claim{TTL: time.Hour, Heartbeat: time.Minute}
	dead := claim
	dead.Holder.Identity = self
	return &locktest.Bench{
		TB: t, Name: "nightly", Claim: claim, Dead: dead, Struck: open(t, store.Serve(t, f.fate), 0), Other: open(t, store.Serve(t, nil), 0), Hidden: true,
		Strike: func() { f.on.Store(true) },
		Calm: func() bool {
			f.on.Store(false)
			return f.done.Load()
		},
		Land:  store.Land,
		Taken: func(string) {},
		Token: func() string { return token(t, store) },
		Gone:  func() {},
	}
}

// nightly is the object of a lock.
const nightly = "jobs/lock/night/nightly"

// token reads the holder's token.
func token(t testing.TB, store *fakes3.Store) string {
	token, err := fakes3.Holder(store.Get(nightly))
	require.NoError(t, err)
	return token
}

// TestTooLate: an attempt without an answer, which is carried out when its contender has given up,
// acquires nothing. Neither does it if there was an object before.
func TestTooLate(t *testing.T) {
	t.Parallel()
	store := tested()
	src, other := open(t, store.Serve(t, func(r *http.Request) fakes3.Outcome {
		if body, err := io.ReadAll(r.Body); err == nil && r.Method == http.MethodPut && strings.Contains(string(body), `"lock":`) {
			return fakes3.Late
		}
		return fakes3.Answered
	}), time.Second), open(t, store.Serve(t, nil), 0)
	for rounds, tries := 0, 0; rounds < 2; tries++ {
		require.Less(t, tries, 20, "Close never withdraws an attempt")
		c, err := src.Contend(t.Context(), "nightly", source.Claim{TTL: time.Hour, Heartbeat: time.Minute}, source.StalePolicy{})
		require.NoError(t, err)
		_, err = c.Try(t.Context())
		require.ErrorIs(t, err, source.ErrUnsure)
		before := store.Get(nightly)
		require.NoError(t, c.Close())
		withdrawn := store.Get(nightly) != before
		store.Land()
		if !withdrawn { // Close tries for 600 ms, which a busy machine may need for one request
			_, err = multilock.Break(t.Context(), other, "nightly", multilock.BreakOptions{Alive: true})
			require.NoError(t, err)
			continue
		}
		rounds++
		require.Empty(t, token(t, store))
		lock, err := multilock.TryAcquire(t.Context(), other, "nightly", multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
	}
}

// TestFoundLater: a lock whose attempt was carried out without an answer is valid from that attempt
// on, and not from the request that finds it.
func TestFoundLater(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	var carriedOut boottime.Instant
	src := open(t, tested().Serve(t, func(*http.Request) fakes3.Outcome {
		switch i := n.Add(1); {
		case i == 3:
			carriedOut = boottime.Now()
			return fakes3.Lost
		case i > 3 && i < 6:
			return fakes3.Dropped
		}
		return fakes3.Answered
	}), 0)
	c, err := src.Contend(t.Context(), "nightly", source.Claim{TTL: time.Hour, Heartbeat: time.Minute}, source.StalePolicy{})
	require.NoError(t, err)
	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	require.Positive(t, carriedOut.Since(lease.Since()))
	require.NoError(t, lease.Release(t.Context()))
	require.NoError(t, c.Close())
}

// TestUnreachable: a result that could not be sent is not recorded, and the error says so.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	var lease source.Lease
	t.Run("while the store is up", func(t *testing.T) {
		c, err := open(t, tested().Serve(t, nil), time.Second).Contend(t.Context(), "nightly", source.Claim{TTL: time.Hour, Heartbeat: time.Minute}, source.StalePolicy{})
		require.NoError(t, err)
		lease, err = c.Try(t.Context())
		require.NoError(t, err)
	})
	err := lease.(source.Committer).Commit(t.Context(), source.Result{Name: "nightly", Attempt: 1}) //nolint:forcetypeassert // it has results
	require.ErrorContains(t, err, "is the store running")
	require.NotErrorIs(t, err, source.ErrUnsure)
}

// TestEncryption: each write asks the store to encrypt as the URL says.
func TestEncryption(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][2]string{
		"": {}, "&sse=AES256": {"AES256"}, "&sse=aws:kms": {"aws:kms"}, "&sse=aws:kms&kmskey=night": {"aws:kms", "night"},
	} {
		var writes atomic.Int64
		endpoint := fakes3.New().Serve(t, func(r *http.Request) fakes3.Outcome {
			if r.Method == http.MethodPut {
				writes.Add(1)
				got := [2]string{r.Header.Get("X-Amz-Server-Side-Encryption"), r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id")}
				assert.Equal(t, want, got, query)
			}
			return fakes3.Answered
		})
		src, err := s3lock.Open(s3lock.Options{Place: s3lock.Place{URL: "s3://bucket/jobs?endpoint=" + endpoint + query}, Group: "night"})
		require.NoError(t, err)
		lock, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
		require.NoError(t, src.Close())
		require.Positive(t, writes.Load())
	}
}

// TestLostInTheCrowd: a release that a proxy sent twice is refused as the holder sees it, and has freed
// the lock all the same, however many others have held it before the holder asks.
func TestLostInTheCrowd(t *testing.T) {
	t.Parallel()
	for _, others := range []int{1, 5, 20} {
		store := tested()
		other := open(t, store.Serve(t, nil), 0)
		var releasing, repeated atomic.Bool
		var crowd sync.WaitGroup
		src := open(t, store.Serve(t, func(r *http.Request) fakes3.Outcome {
			switch {
			case r.Method == http.MethodPut && releasing.CompareAndSwap(true, false):
				repeated.Store(true)
				return fakes3.Repeated
			case repeated.CompareAndSwap(true, false):
				crowd.Go(func() {
					for range others {
						if lock, err := multilock.TryAcquire(t.Context(), other, "nightly", multilock.Options{}); assert.NoError(t, err) {
							assert.NoError(t, lock.Release(t.Context()))
						}
					}
				})
				crowd.Wait()
			}
			return fakes3.Answered
		}), 0)
		lock, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
		require.NoError(t, err)
		releasing.Store(true)
		require.NoError(t, lock.Release(t.Context()), "%d others", others)
		crowd.Wait() // a busy machine repeats the request meanwhile
		require.False(t, releasing.Load() || repeated.Load())
	}
}

// TestUnfit: a store that ignores conditions, checks them before it writes, or returns an old object
// with a new ETag, is refused by name.
func TestUnfit(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*fakes3.Store){
		"ignores the condition":                    func(s *fakes3.Store) { s.Ignoring = true },
		"of 16 writers replace one object at once": func(s *fakes3.Store) { s.Racy = true },
		"returned an old object with the ETag":     func(s *fakes3.Store) { s.Torn = true },
	} {
		store := fakes3.New()
		set(store)
		endpoint := store.Serve(t, nil)
		src := open(t, endpoint, 0)
		_, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
		require.ErrorContains(t, err, "the store does not keep its guarantees")
		require.ErrorContains(t, err, endpoint)
		if !store.Ignoring {
			require.ErrorContains(t, err, name)
		}
		require.Empty(t, store.Names(), "nothing is left")
		findings := src.Examine(t.Context())
		require.Len(t, findings, 1)
		require.Contains(t, findings[0].Text, endpoint)
	}
	store := fakes3.New()
	src := open(t, store.Serve(t, nil), 0)
	lock, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{})
	require.NoError(t, err)
	require.NoError(t, lock.Release(t.Context()))
	for _, f := range src.Examine(t.Context()) {
		require.Equal(t, source.Fine(f.Subject, f.Text), f)
	}
	require.Equal(t, "passed", store.Get("jobs/passed"))
}
