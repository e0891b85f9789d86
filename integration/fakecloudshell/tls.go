package fakecloudshell

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// selfSigned makes a certificate that is its own authority, as installations of
// CloudShell usually have.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	now := time.Now() // what verifies it goes by the real clock
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "fake CloudShell"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(30 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:                  true,
		BasicConstraintsValid: true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// Pool has the certificate that a client of an HTTPS server must trust; it is nil
// with HTTP.
func (s *Server) Pool() *x509.CertPool {
	if s.certificate.Leaf == nil {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.certificate.Leaf)
	return pool
}

// WriteCA writes that certificate into a file, as PEM.
func (s *Server) WriteCA(path string) error {
	if s.certificate.Leaf == nil {
		return fmt.Errorf("certificate of %s: it has none, since it does not speak https", s.URL())
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Leaf.Raw})
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}
