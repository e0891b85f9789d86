package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/integration/pglab"
)

// stored is a place on a server, with a dump of everything stored there.
type stored struct {
	*station
	dump func() []string
}

func storedPlaces() map[string]func(*testing.T) stored {
	return map[string]func(*testing.T) stored{
		"cloudshell": func(t *testing.T) stored {
			s, server := cloudshellStation(t)
			return stored{s, func() []string { return services(server) }}
		},
		"mongodb": func(t *testing.T) stored {
			s, server := mongoStation(t)
			return stored{s, func() []string { return documents(t, server) }}
		},
		"etcd": func(t *testing.T) stored {
			address := etcdlab.Start(t, 1).Members[0].Client
			s := newStation(t, "MULTILOCK_SOURCE=etcd://"+address+"/locks")
			return stored{s, func() []string { return keys(t, address) }}
		},
		"postgres": func(t *testing.T) stored {
			server := pglab.Start(t, pglab.Options{})
			return stored{newStation(t, "MULTILOCK_SOURCE="+server.URL("")), func() []string { return rows(server) }}
		},
	}
}

func services(server *fakecloudshell.Server) (found []string) {
	for _, s := range server.Services(sandbox) {
		found = append(found, fmt.Sprintf("%+v", s))
	}
	slices.Sort(found)
	return found
}

func documents(t *testing.T, server *mongolab.Server) (found []string) {
	t.Helper()
	database := collection(t, server).Database()
	names, err := database.ListCollectionNames(t.Context(), bson.M{})
	require.NoError(t, err)
	for _, name := range names {
		cursor, err := database.Collection(name).Find(t.Context(), bson.M{})
		require.NoError(t, err)
		found = append(found, name)
		for cursor.Next(t.Context()) {
			found = append(found, name+" "+cursor.Current.String())
		}
		require.NoError(t, cursor.Err())
	}
	slices.Sort(found)
	return found
}

func keys(t *testing.T, address string) (found []string) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
	require.NoError(t, err)
	defer client.Close()
	all, err := client.Get(context.WithoutCancel(t.Context()), "", clientv3.WithPrefix())
	require.NoError(t, err)
	for _, pair := range all.Kvs {
		found = append(found, fmt.Sprintf("%q %d %d %q", pair.Key, pair.ModRevision, pair.Lease, pair.Value))
	}
	return found
}

func rows(server *pglab.Server) (found []string) {
	tables := server.SQL("SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1")
	for _, table := range tables {
		found = append(found, table[0])
		for _, row := range server.SQL("SELECT t.xmin || t::text FROM " + table[0] + " t ORDER BY 1") {
			found = append(found, table[0]+" "+row[0])
		}
	}
	return found
}

// Read-only commands change nothing on a server, whatever is stored there. TestLooksChangeNothing is
// the test for directories.
func TestLooksChangeNothingOnAServer(t *testing.T) {
	t.Parallel()
	for source, open := range storedPlaces() {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			list := filepath.Join(t.TempDir(), "list")
			require.NoError(t, os.WriteFile(list, []byte("a\ttrue\nb\tfalse\n"), 0o600))
			for scene, prepare := range []func(){
				func() {}, // a new place
				func() { s.must("run", "-n", "x", "-g", "other", "--", "true") },
				func() {
					for _, line := range []string{
						"run --once -n x -g G -- true", "run --every 1h -n y -g G -- true", "run --fair -w 1m -n f -g G -- true",
						"acquire --detach --ttl 1h -n held -g G", "batch -g G " + list,
					} {
						s.run(strings.Fields(line)...) // some sources reject some of these
					}
				},
			} {
				prepare()
				for _, look := range []string{
					"status", "status -g G", "status -g G x", "status -g G held --json", "status -g G nothing", "status -r -g G", "status --all",
					"history -g G", "history -g G x", "overdue -g G", "metrics -g G", "metrics", "logs -g G", "logs -g G b", "report -g G -o -",
					"wait -g G --timeout 1s", "wait -g new --timeout 1s", "wait -g G --members x --timeout 1s", "clean -g G --dry-run", "clean -g G --history --dry-run",
				} {
					before := s.dump()
					got := s.run(strings.Fields(look)...)
					require.NotContains(t, got.stderr, "no option", "%s: %s", look, got.stderr)
					require.Equal(t, before, s.dump(), "scene %d, after %s (code %d): %s", scene, look, got.code, got.stderr)
				}
			}
		})
	}
}
