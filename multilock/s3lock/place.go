package s3lock

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/encrypt"

	"github.com/multilock/go/multilock/source/remote"
)

// DefaultTimeout is the time limit of one operation, including retries.
const DefaultTimeout = 30 * time.Second

// Place is the location of the locks.
type Place struct {
	// URL is s3://BUCKET/PREFIX. Parameters: region=, which otherwise comes from AWS_REGION;
	// endpoint=HOST[:PORT] for a store other than Amazon's, which is used with TLS unless it is on this
	// host; tls=false for one without TLS, cafile= for the certificate of its authority, and
	// style=host if its buckets are host names; sse=AES256 or sse=aws:kms, with kmskey=ID for a key of
	// one's own, to encrypt other than the bucket does by default. Credentials come from the environment,
	// the profile of AWS's tools, or the instance's role.
	URL string
	// Timeout is the time limit of one operation, DefaultTimeout if 0.
	Timeout time.Duration
	// Transport replaces the HTTP transport; for tests.
	Transport http.RoundTripper
}

// address is a parsed URL.
type address struct {
	remote.URL
	bucket, prefix   string
	endpoint, region string
	hosted           bool               // buckets are host names
	encryption       encrypt.ServerSide // nil for the default of the bucket
	tls              *tls.Config        // nil without TLS
}

const amazon = "s3.amazonaws.com"

// parseURL parses a URL, and reads the certificate that it names.
func parseURL(text string) (a address, err error) {
	if a.URL, err = remote.CutURL(text, "s3://BUCKET/PREFIX", "s3"); err != nil {
		return a, err
	}
	if a.Login != "" {
		return a, a.Invalid("it has credentials, which every user of this host could see; put them into the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) or a profile of AWS's tools")
	}
	a.bucket = a.Hosts
	if strings.Trim(a.bucket, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || len(a.bucket) < 3 || len(a.bucket) > 63 {
		return a, a.Invalid("the name of a bucket has 3 to 63 lower-case letters, digits, dots and dashes")
	}
	prefix := strings.Trim(a.Path, "/")
	if prefix == "" || escape(prefix) != prefix {
		return a, a.Invalid("it must name a prefix for the objects, as in s3://" + a.bucket + "/jobs, of letters, digits, dots, dashes and underscores")
	}
	a.prefix = prefix + "/"
	return a, a.parseQuery()
}

func (a *address) parseQuery() error {
	values, err := url.ParseQuery(a.Query)
	if err != nil {
		return a.Invalid("its parameters cannot be read")
	}
	for key := range values {
		if !slices.Contains([]string{"region", "endpoint", "tls", "cafile", "style", "sse", "kmskey"}, key) {
			return a.Invalid("the parameter \"" + key + "\" is unknown; there are region, endpoint, tls, cafile, style, sse and kmskey")
		}
	}
	a.region = cmp.Or(values.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	a.endpoint = values.Get("endpoint")
	if a.endpoint == "" && a.region == "" {
		return a.Invalid("name the bucket's region: add ?region=REGION, or set AWS_REGION")
	}
	if strings.Contains(a.endpoint, "/") {
		return a.Invalid("the endpoint is HOST or HOST:PORT, without a scheme")
	}
	switch style := values.Get("style"); style {
	case "", "path", "host":
		a.hosted = style == "host" || a.endpoint == "" && style == ""
	default:
		return a.Invalid("write style=path or style=host")
	}
	secure := a.endpoint == "" || !isLoopback(a.endpoint)
	switch text := values.Get("tls"); {
	case text == "false" && a.endpoint == "":
		return a.Invalid("Amazon's endpoints are used with TLS")
	case text != "":
		if secure = text == "true"; !secure && text != "false" {
			return a.Invalid("write tls=true or tls=false")
		}
	}
	if a.encryption, err = encryption(values.Get("sse"), values.Get("kmskey")); err != nil {
		return a.Invalid(err.Error())
	}
	a.endpoint, a.region = cmp.Or(a.endpoint, amazon), cmp.Or(a.region, "us-east-1")
	cafile := values.Get("cafile")
	if secure || cafile != "" {
		a.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if cafile != "" {
		if a.tls.RootCAs, err = remote.Authorities(cafile); err != nil {
			return a.Invalid(err.Error())
		}
	}
	return nil
}

// encryption returns how the store is to encrypt objects.
func encryption(method, key string) (encrypt.ServerSide, error) {
	switch {
	case method == "aws:kms":
		return encrypt.NewSSEKMS(key, nil)
	case key != "":
		return nil, errors.New("kmskey needs sse=aws:kms")
	case method == "AES256":
		return encrypt.NewSSE(), nil
	case method != "":
		return nil, errors.New("write sse=AES256 or sse=aws:kms")
	}
	return nil, nil
}

// isLoopback reports whether an endpoint is on this host.
func isLoopback(endpoint string) bool {
	host, _, err := net.SplitHostPort(endpoint)
	if err != nil {
		host = endpoint
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
