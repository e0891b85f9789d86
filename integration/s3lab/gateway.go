package s3lab

import (
	"context"
	"fmt"
	"io"
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

// program builds versitygw, of the version in the go.mod of its directory, and sets the credentials in the
// environment.
func program(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": user, "AWS_SECRET_ACCESS_KEY": secret, "AWS_REGION": region} {
			if built.err = os.Setenv(name, value); built.err != nil {
				return
			}
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
	args    []string
	cmd     *exec.Cmd
	program string
}

// Start starts a gateway whose objects are in a directory of its own. Its filesystem needs extended
// attributes. More arguments come after "posix".
func Start(t testing.TB, more ...string) *Gateway {
	t.Helper()
	g := &Gateway{TB: t, Address: engine.Free(t, engine.OwnHost()), program: program(t)}
	g.args = append([]string{"--port", g.Address, "--access", user, "--secret", secret, "--region", region, "--quiet", "posix"}, more...)
	g.args = append(g.args, t.TempDir())
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
	g.cmd = exec.Command(g.program, g.args...) //nolint:gosec // the program of this test
	g.cmd.Stderr = os.Stderr
	g.cmd.SysProcAttr = dieWithParent()
	require.NoError(g, g.cmd.Start())
	answers := func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := g.Client.ListBuckets(ctx)
		return err == nil
	}
	require.Eventually(g, answers, engine.Watchdog, 50*time.Millisecond, "versitygw does not get ready")
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
