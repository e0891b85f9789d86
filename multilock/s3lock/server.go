package s3lock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// server is the client of a bucket.
type server struct {
	at        address
	timeout   time.Duration
	transport http.RoundTripper
	client    *minio.Core
	tested    *remote.Facts[bool] // the store has passed the test: see trial.go
	answered  atomic.Bool         // the store has answered a request

	mu    sync.Mutex
	known map[string]stored // what this process has written, for its next write
	// doubtful are the ETags that a write without an answer may still replace, by object.
	doubtful map[string]string
}

// stored is an object as read or written. Its ETag is "" if it does not exist.
type stored struct {
	object
	etag    string
	silence time.Duration // since it was written, by the store's clock, or source.Unknown
	written time.Time     // by the store's clock
	now     time.Time     // by that clock, when it was read; zero if the store does not tell
}

const dialTimeout = 4 * time.Second

func newServer(at Place) (*server, error) {
	a, err := parseURL(at.URL)
	if err != nil {
		return nil, err
	}
	timeout, err := remote.Timeout(at.Timeout, DefaultTimeout)
	if err != nil {
		return nil, err
	}
	transport := at.Transport
	if transport == nil {
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSHandshakeTimeout: dialTimeout,
			TLSClientConfig: a.tls, MaxIdleConnsPerHost: width, IdleConnTimeout: time.Minute, DisableCompression: true,
		}
	}
	lookup := minio.BucketLookupPath
	if a.hosted {
		lookup = minio.BucketLookupDNS
	}
	client, err := minio.NewCore(a.endpoint, &minio.Options{
		Creds:  credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{}}),
		Secure: a.tls != nil, Transport: transport, Region: a.region, BucketLookup: lookup, MaxRetries: 1,
	})
	if err != nil {
		return nil, a.Invalid(err.Error())
	}
	return &server{
		at: a, timeout: timeout, transport: transport, client: client, tested: remote.NewFacts[bool](),
		known: map[string]stored{}, doubtful: map[string]string{},
	}, nil
}

// width is how many requests are made at once.
const width = 16

// longestTry is the time limit of one request.
const longestTry = 5 * time.Second

// repeat repeats a request until it is answered: see remote.Repeat.
func (s *server) repeat(ctx context.Context, limit time.Duration, ask func(context.Context) error) (doubt bool, err error) {
	if limit == 0 || limit > s.timeout {
		limit = s.timeout
	}
	return remote.Repeat(ctx, limit, longestTry, func(ctx context.Context) (remote.Tried, error) {
		err := ask(ctx)
		code := statusOf(err)
		if err == nil || code != 0 {
			s.answered.Store(true)
		}
		return remote.Tried{Doubt: inDoubt(err), Again: passes(err), Told: code != 0, Nobody: !s.answered.Load() && isUnsent(err)}, err
	})
}

// text reads an object. It returns nil if the object does not exist.
func (s *server) text(ctx context.Context, name string) (text []byte, info stored, err error) {
	if err := s.checkName(name); err != nil {
		return nil, info, err
	}
	body, about, header, err := s.client.GetObject(ctx, s.at.bucket, s.at.prefix+name, minio.GetObjectOptions{})
	if isAbsent(err) {
		return nil, info, nil
	}
	if err != nil {
		return nil, info, err
	}
	defer body.Close() //nolint:errcheck // it was read
	if text, err = io.ReadAll(body); err != nil {
		return nil, info, err
	}
	info = stored{etag: about.ETag, silence: source.Unknown, written: about.LastModified}
	if now, err := http.ParseTime(header.Get("Date")); err == nil && !info.written.IsZero() {
		info.now, info.silence = now, max(now.Sub(info.written), 0)
	}
	if text == nil {
		text = []byte{}
	}
	return text, info, nil
}

// read reads an object that is written conditionally.
func (s *server) read(ctx context.Context, name string) (o stored, err error) {
	text, o, err := s.text(ctx, name)
	if err == nil {
		o.object, err = decode(text)
	}
	return o, err
}

const always = "*" // replace what there is, or create the object

// write writes an object if its ETag is still the one that it was, or if was is "", only if it does not exist.
func (s *server) write(ctx context.Context, name string, text []byte, was string) (etag string, err error) {
	if err := s.checkName(name); err != nil {
		return "", err
	}
	opt := minio.PutObjectOptions{ContentType: "application/json", DisableContentSha256: true, ServerSideEncryption: s.at.encryption}
	switch was {
	case always:
	case "":
		opt.SetMatchETagExcept("*")
	default:
		opt.SetMatchETag(was)
	}
	sum := sha256.Sum256(text)
	info, err := s.client.PutObject(ctx, s.at.bucket, s.at.prefix+name, bytes.NewReader(text), int64(len(text)), "", hex.EncodeToString(sum[:]), opt)
	if err == nil && info.ETag == "" {
		err = errors.New("the store has not returned an ETag")
	}
	return info.ETag, err
}

// remove removes an object, if there is one.
func (s *server) remove(ctx context.Context, name string) error {
	err := s.client.RemoveObject(ctx, s.at.bucket, s.at.prefix+name, minio.RemoveObjectOptions{})
	if isAbsent(err) {
		return nil
	}
	return err
}

// listed is an object in a listing.
type listed struct {
	name    string
	size    int64
	written time.Time
}

// list lists the objects whose names begin with a prefix, after another name; at most some, or all
// for 0.
func (s *server) list(ctx context.Context, prefix, after string, most int) (all []listed, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opt := minio.ListObjectsOptions{Prefix: s.at.prefix + prefix, Recursive: true, MaxKeys: most}
	if after != "" {
		opt.StartAfter = s.at.prefix + after
	}
	for o := range s.client.ListObjectsIter(ctx, s.at.bucket, opt) {
		if o.Err != nil {
			return nil, o.Err
		}
		if all = append(all, listed{o.Key[min(len(s.at.prefix), len(o.Key)):], o.Size, o.LastModified}); len(all) == most {
			break
		}
	}
	return all, ctx.Err()
}
