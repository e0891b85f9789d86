package cli_test

import (
	"fmt"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/integration/s3lab"
)

const sandbox = "5c1e0b3a-77f2-4c0d-9c56-0f0d4a9b2e11"

// quick makes waiters ask more often than is good for a real server.
const quick = "&pause=20ms-100ms"

func newCloudshell(t *testing.T, scheme fakecloudshell.Scheme) *fakecloudshell.Server {
	t.Helper()
	return newCloudshellWith(t, fakecloudshell.Options{Scheme: scheme})
}

// newCloudshellWith starts a server with one user, one reservation and, unless opt has models, a model
// with owners.
func newCloudshellWith(t *testing.T, opt fakecloudshell.Options) *fakecloudshell.Server {
	t.Helper()
	opt.Users = []fakecloudshell.User{{Name: "admin", Password: password, Admin: true}}
	opt.Reservations = []fakecloudshell.Reservation{{ID: sandbox}}
	if opt.Models == nil {
		opt.Models = []fakecloudshell.Model{fakecloudshell.OwnedMutex()}
	}
	return fakecloudshell.Start(t, opt)
}

func cloudshellURL(server *fakecloudshell.Server) string {
	text := "cloudshell://admin@" + server.Address() + "/" + sandbox + "?domain=Global" + quick
	if strings.HasPrefix(server.URL(), "http:") {
		text += "&scheme=http"
	}
	return text
}

// startProxy starts a counting proxy that forwards every request to one server, whatever its
// destination.
func startProxy(t *testing.T, server string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		asked.Add(1)
		r.Out.URL.Host = server
	}}
	proxy := httptest.NewServer(forward)
	t.Cleanup(proxy.Close)
	return proxy.URL, asked
}

// cloudshellStation is a station of hosts that share a reservation over HTTPS.
func cloudshellStation(t *testing.T) (*station, *fakecloudshell.Server) {
	t.Helper()
	server := newCloudshell(t, fakecloudshell.HTTPS)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, server.WriteCA(ca))
	source := cloudshellURL(server) + "&cafile=" + url.QueryEscape(ca)
	return newStation(t, "MULTILOCK_SOURCE="+source, "MULTILOCK_PASSWORD="+password), server
}

// newMongo starts a server that programs take for MongoDB.
func newMongo(t *testing.T) *mongolab.Server {
	t.Helper()
	return mongolab.Start(t, mongolab.Options{Disguised: true})
}

// mongoURL returns the URL of a collection.
func mongoURL(server *mongolab.Server, collection string) string {
	head, query, _ := strings.Cut(server.URI(), "/?")
	return fmt.Sprintf("%s/%s.%s?%s", head, server.Database(), collection, query)
}

func mongoStation(t *testing.T) (*station, *mongolab.Server) {
	t.Helper()
	server := newMongo(t)
	return newStation(t, "MULTILOCK_SOURCE="+mongoURL(server, "locks")), server
}

// etcdStation is a station of hosts that share a prefix in etcd.
func etcdStation(t *testing.T) *station {
	t.Helper()
	return newStation(t, "MULTILOCK_SOURCE="+etcdlab.Start(t, 1).URL("locks"))
}

// postgresStation is a station of hosts that share a schema in PostgreSQL.
func postgresStation(t *testing.T) *station {
	t.Helper()
	return newStation(t, "MULTILOCK_SOURCE="+pglab.Start(t, pglab.Options{}).URL("schema=locks"))
}

// s3Station is a station of hosts that share a bucket.
func s3Station(t *testing.T) *station {
	t.Helper()
	return newStation(t, "MULTILOCK_SOURCE="+s3lab.URL(s3lab.Start(t).Address, "jobs"))
}

// deaf returns an address where nothing listens.
func deaf(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}
