package etcd_test

import (
	"context"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/etcdlock"
	"github.com/multilock/go/multilock/source"
)

// atOnce is the time allowed, on a busy machine, to report a permanent error.
const atOnce = 30 * time.Second

// use acquires and releases a lock at this URL, as a run does.
func use(t *testing.T, url string) error {
	t.Helper()
	src, err := etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: url}})
	require.NoError(t, err)
	defer src.Close()
	start := time.Now()
	err = multilock.Do(within(t), src, "nightly", multilock.Options{}, func(context.Context) error { return nil })
	require.Less(t, time.Since(start), atOnce)
	return err
}

func query(c *etcdlab.Certs, files map[string]string) string {
	values := url.Values{}
	for key, file := range files {
		values.Set(key, c.File(file))
	}
	return "?" + values.Encode()
}

// TestCertificates: mutual TLS works. A mismatch is reported at once, with the setting to add, and
// Acquire does not retry.
func TestCertificates(t *testing.T) {
	certs, others := etcdlab.NewCerts(t), etcdlab.NewCerts(t)
	secure, plain := etcdlab.StartSecure(t, 3, certs), etcdlab.Start(t, 1)
	right := map[string]string{"cafile": "ca.pem", "certfile": "client.pem", "keyfile": "client.key"}
	require.NoError(t, use(t, secure.URL("jobs")+query(certs, right)))
	for name, c := range map[string]struct{ url, want string }{
		"no TLS":                  {secure.URL("jobs"), "add ?tls=true"},
		"unknown authority":       {secure.URL("jobs") + "?tls=true", "cafile=FILE"},
		"another authority":       {secure.URL("jobs") + query(others, right), "cafile=FILE"},
		"no certificate":          {secure.URL("jobs") + query(certs, map[string]string{"cafile": "ca.pem"}), "certfile=FILE"},
		"another name":            {secure.URL("jobs") + query(certs, right) + "&servername=db.example.org", "servername=NAME"},
		"TLS where there is none": {plain.URL("jobs") + query(certs, right), "speaks no TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := use(t, c.url)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, source.ErrPassing)
			require.NotErrorIs(t, err, source.ErrUnsure)
		})
	}
	t.Run("a certificate of another authority", func(t *testing.T) {
		err := use(t, secure.URL("jobs")+"?"+url.Values{"cafile": {certs.File("ca.pem")}, "certfile": {others.File("client.pem")}, "keyfile": {others.File("client.key")}}.Encode())
		require.ErrorContains(t, err, "that its authority has signed")
	})
}

// TestRefusedConnection: a refused connection is also reported at once, but as temporary.
func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	for _, user := range []string{"", "ada:secret@"} {
		src, err := etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: "etcd://" + user + listener.Addr().String() + "/jobs"}})
		require.NoError(t, err)
		start := time.Now()
		_, err = multilock.TryAcquire(within(t), src, "nightly", multilock.Options{})
		require.ErrorContains(t, err, "connection refused", user)
		require.ErrorContains(t, err, "are its members running", user)
		require.ErrorIs(t, err, source.ErrPassing)
		require.Less(t, time.Since(start), atOnce)
		require.NoError(t, src.Close())
	}
}

// TestUsers: a user with write access below the prefix can do everything. A wrong password, a missing
// password and another prefix are rejected at once.
func TestUsers(t *testing.T) {
	t.Parallel()
	c := etcdlab.Start(t, 1)
	ctx := within(t)
	admin := c.Client
	must := func(_ any, err error) { require.NoError(t, err) }
	must(admin.RoleAdd(ctx, "root"))
	must(admin.UserAdd(ctx, "root", "top"))
	must(admin.UserGrantRole(ctx, "root", "root"))
	must(admin.RoleAdd(ctx, "jobs"))
	must(admin.RoleGrantPermission(ctx, "jobs", "jobs/", clientv3.GetPrefixRangeEnd("jobs/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(admin.UserAdd(ctx, "ada", "s/ecret"))
	must(admin.UserGrantRole(ctx, "ada", "jobs"))
	must(admin.AuthEnable(ctx))
	host := c.Members[0].Client
	require.NoError(t, use(t, "etcd://ada:s%2Fecret@"+host+"/jobs"))
	for url, want := range map[string]string{
		"etcd://ada:wrong@" + host + "/jobs":       "check the user and the password",
		"etcd://bob:s%2Fecret@" + host + "/jobs":   "check the user and the password",
		"etcd://" + host + "/jobs":                 "check the user and the password",
		"etcd://ada:s%2Fecret@" + host + "/others": "the prefix others/",
	} {
		err := use(t, url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "ecret", url)
		require.NotErrorIs(t, err, source.ErrPassing, url)
	}

	src, err := etcdlock.Open(etcdlock.Options{Place: etcdlock.Place{URL: "etcd://ada:s%2Fecret@" + host + "/jobs"}})
	require.NoError(t, err)
	defer src.Close()
	lock, err := multilock.TryAcquire(ctx, src, "nightly", multilock.Options{})
	require.NoError(t, err)
	require.NoError(t, lock.Verify(ctx))
	_, err = lock.Fence(ctx)
	require.NoError(t, err)
	waiter := make(chan error, 1)
	go func() {
		next, err := multilock.Acquire(ctx, src, "nightly", multilock.Options{})
		if err == nil {
			err = next.Release(ctx)
		}
		waiter <- err
	}()
	time.Sleep(300 * time.Millisecond)
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, <-waiter)
	for _, found := range src.Examine(ctx) {
		require.NotEqual(t, source.SeverityUnusable, found.Severity, found.Text)
	}
}
