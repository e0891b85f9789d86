package mongolab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOptionsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	const real = "mongodb://127.0.0.1:27017/"
	for name, opt := range map[string]Options{
		"no directory":             {},
		"missing directory":        {Dir: filepath.Join(dir, "missing")},
		"directory that is a file": {Dir: file},
		"real and replica set":     {Server: real, ReplicaSet: true},
		"several hosts":            {Server: "mongodb://a:1,b:2/"},
		"found by DNS":             {Server: "mongodb+srv://a/"},
		"TLS":                      {Server: real + "?tls=true"},
		"no host":                  {Server: "mongodb://"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(opt)
			require.ErrorContains(t, err, "mongolab: ")
		})
	}
}

func TestPasswordIsNotRepeated(t *testing.T) {
	_, err := Open(Options{Server: "mongodb://me:secret@a:1,b:2/"})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

// The proxy's URI keeps the options that a real server needs, but sends clients only to the proxy.
func TestURIOfARealServer(t *testing.T) {
	s, err := Open(Options{Server: "mongodb://me:secret@db/admin?replicaSet=rs0&authSource=x&compressors=zstd"})
	require.NoError(t, err)
	defer s.listener.Close()
	require.Equal(t, "db:27017", s.place.real.Host)
	require.Equal(t, "mongodb://me:secret@"+s.listener.Addr().String()+
		"/admin?authSource=x&directConnection=true&replicaSet=rs0", s.URI())
	require.True(t, s.Real())
}
