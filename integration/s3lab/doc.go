// Package s3lab runs versitygw, an S3 server on a POSIX filesystem, with a proxy that loses, delays and
// repeats requests in front of it. It is for tests only.
package s3lab
