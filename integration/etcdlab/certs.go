package etcdlab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Certs is a certificate authority and the certificates it has signed, as files in Dir: ca.pem;
// server.pem and server.key, for 127.0.0.1; client.pem and client.key.
type Certs struct {
	testing.TB
	Dir string
}

// NewCerts creates the authority and the certificates.
func NewCerts(t testing.TB) *Certs {
	t.Helper()
	c := &Certs{t, t.TempDir()}
	form := func(name string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	}
	authority := form("authority")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	signer := c.write("ca", authority, authority, nil)
	server := form("server")
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} // etcd also calls itself
	c.write("server", server, authority, signer)
	client := form("ada")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	c.write("client", client, authority, signer)
	return c
}

// write creates a certificate and its key. Without a signer it is self-signed.
func (c *Certs) write(name string, form, parent *x509.Certificate, signer *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	c.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(c, err)
	if signer == nil {
		signer = key
	}
	cert, err := x509.CreateCertificate(rand.Reader, form, parent, key.Public(), signer)
	require.NoError(c, err)
	plain, err := x509.MarshalECPrivateKey(key)
	require.NoError(c, err)
	for ending, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: cert}, ".key": {Type: "EC PRIVATE KEY", Bytes: plain}} {
		require.NoError(c, os.WriteFile(c.File(name+ending), pem.EncodeToMemory(block), 0o600))
	}
	return key
}

// File returns the path of a file.
func (c *Certs) File(name string) string { return filepath.Join(c.Dir, name) }

// config returns a client's TLS configuration.
func (c *Certs) config() *tls.Config {
	c.Helper()
	pair, err := tls.LoadX509KeyPair(c.File("client.pem"), c.File("client.key"))
	require.NoError(c, err)
	text, err := os.ReadFile(c.File("ca.pem"))
	require.NoError(c, err)
	pool := x509.NewCertPool()
	require.True(c, pool.AppendCertsFromPEM(text))
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}}
}
