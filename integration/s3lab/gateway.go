package s3lab

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/engine"
)

// Bucket exists in every gateway.
const Bucket = "bucket"

const (
	user   = "tester"
	secret = "no-secret-here"
	region = "us-east-1"
)

// built is the server's program. It is built once.
var built struct {
	sync.Once
	dir string
	err error
}

// ServerVariable names another server to test by hand: its command line, in which {address}, {host},
// {port} and {dir} are replaced. It gets the credentials from its environment: AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY.
const ServerVariable = "MULTILOCK_S3_SERVER"

// commandLine returns how to start a server at an address with its objects in dir.
func commandLine(t testing.TB, address, dir string, more []string) []string {
	t.Helper()
	versitygw := program(t)
	other := strings.Fields(os.Getenv(ServerVariable))
	if len(other) == 0 {
		line := []string{versitygw, "--port", address, "--access", user, "--secret", secret, "--region", region, "--quiet", "posix"}
		return append(append(line, more...), dir)
	}
	if len(more) > 0 {
		t.Skip("with versitygw only")
	}
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	for i, word := range other {
		other[i] = strings.NewReplacer("{address}", address, "{host}", host, "{port}", port, "{dir}", dir).Replace(word)
	}
	return other
}

// program sets the credentials in the environment, and builds versitygw, of the version in the go.mod of its
// directory, unless another server is tested.
func program(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": user, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": region} {
			if built.err = os.Setenv(name, value); built.err != nil {
				return
			}
		}
		if os.Getenv(ServerVariable) != "" {
			return
		}
		if built.dir, built.err = os.MkdirTemp("", "multilock-s3-"); built.err != nil {
			return
		}
		_, file, _, _ := runtime.Caller(0)
		build := exec.Command("go", "build", "-o", built.dir, "github.com/versity/versitygw/cmd/versitygw")
		build.Dir = filepath.Join(filepath.Dir(file), "versitygw")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build versitygw: %w: %s", err, out)
		}
	})
	require.NoError(t, built.err)
	return filepath.Join(built.dir, "versitygw")
}

// RemoveProgram deletes what Start has built.
func RemoveProgram() { _ = os.RemoveAll(built.dir) }

// Gateway is a running server with one bucket.
type Gateway struct {
	testing.TB
	Address string
	Client  *minio.Client // for a look behind the scenes
	line    []string
	cmd     *exec.Cmd
}

// Start starts a gateway whose objects are in a directory of its own. Its filesystem needs extended
// attributes. More arguments come after "posix".
func Start(t testing.TB, more ...string) *Gateway {
	t.Helper()
	g := &Gateway{TB: t, Address: engine.Free(t, engine.OwnHost())}
	g.line = commandLine(t, g.Address, t.TempDir(), more)
	var err error
	g.Client, err = minio.New(g.Address, &minio.Options{Creds: credentials.NewStaticV4(user, secret, ""), Region: region})
	require.NoError(t, err)
	g.Begin()
	t.Cleanup(g.Kill)
	require.NoError(t, g.Client.MakeBucket(engine.Within(t), Bucket, minio.MakeBucketOptions{Region: region}))
	return g
}

// Begin starts the server, again after Kill, and waits until it answers.
func (g *Gateway) Begin() {
	g.Helper()
	g.cmd = exec.Command(g.line[0], g.line[1:]...) //nolint:gosec // the program of this test
	g.cmd.Stderr = os.Stderr
	g.cmd.SysProcAttr = dieWithParent()
	require.NoError(g, g.cmd.Start())
	answers := func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := g.Client.ListBuckets(ctx)
		return err == nil
	}
	require.Eventually(g, answers, engine.Watchdog, 50*time.Millisecond, "the server does not get ready")
}

// Kill crashes the server.
func (g *Gateway) Kill() {
	_ = g.cmd.Process.Kill()
	_ = g.cmd.Wait()
}

// Pause stops the server for a while.
func (g *Gateway) Pause(pause time.Duration) {
	g.Helper()
	require.NoError(g, g.cmd.Process.Signal(syscall.SIGSTOP))
	time.Sleep(pause)
	require.NoError(g, g.cmd.Process.Signal(syscall.SIGCONT))
}

// Place makes a prefix count as tested, so that a test need not wait for the test of the store, and
// returns it.
func (g *Gateway) Place(prefix string) string {
	g.Helper()
	_, err := g.Client.PutObject(engine.Within(g), Bucket, prefix+"/passed", strings.NewReader("passed"), int64(len("passed")), minio.PutObjectOptions{})
	require.NoError(g, err)
	return prefix
}

// Get returns an object, nil if it does not exist.
func (g *Gateway) Get(name string) []byte {
	g.Helper()
	o, err := g.Client.GetObject(engine.Within(g), Bucket, name, minio.GetObjectOptions{})
	require.NoError(g, err)
	defer o.Close()
	content, err := io.ReadAll(o)
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil
	}
	require.NoError(g, err)
	return content
}

// URL returns the URL of locks at an address, that of a gateway or a proxy.
func URL(address, prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?tls=false&region=" + region + "&endpoint=" + address
}
