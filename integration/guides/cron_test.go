package guides_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crontab is a block for Debian's crontab and cron, on three hosts at once. Only cron sees a clock that
// shows a moment shortly before the lines' minute; everything else has the true time.
type crontab struct {
	now    string // time of day at which cron starts
	also   string // text above the block
	before string
	calls  map[string]int // number of runs across all hosts, by what ran
	mail   string         // pattern for the mail; without it there must be no mail
	after  string
}

func (c crontab) play(t *testing.T, b block) {
	hosts(t)
	p := newPlace(t)
	if c.before != "" {
		p.must(c.before)
	}
	p.program("/usr/sbin/sendmail", "#!/bin/sh\nexec cat >>"+mail+"\n")
	p.write(p.work+"/crontab", c.also+b.text+"* * * * * echo >/var/tmp/fired.$(hostname)\n")
	p.must("mkdir -p /var/spool/cron/crontabs; rm -f /var/tmp/fired.*; crontab crontab")
	stop := `for i in 1 2 3; do ssh -n host$i 'kill $(cat /run/crond.pid)'; done`
	p.must(`for i in 1 2 3; do ssh -n host$i "env TZ=UTC NO_FAKE_STAT=1 LD_PRELOAD=$(ls /usr/lib/*/faketime/libfaketime.so.1) FAKETIME='@2026-11-24 ` +
		c.now + `' cron" & done; wait`)
	p.eventually("test $(ls /var/tmp/fired.* | wc -l) = 3")
	p.must(stop)
	p.eventually("! pgrep -x 'multilock|multilock-full|sendmail|cron'")
	ran := map[string]int{}
	for _, call := range p.calls() {
		ran[call]++
	}
	mailed, err := os.ReadFile(mail)
	require.NoError(t, err)
	t.Logf("ran: %v\nmailed: %s", ran, mailed)
	require.Equal(t, c.calls, ran, "mailed: %s", mailed)
	if c.mail == "" {
		require.Empty(t, string(mailed))
	} else {
		require.Regexp(t, c.mail, string(mailed))
	}
	if c.after != "" {
		p.must(c.after)
	}
}

func cronGuide() []scene {
	const above = "PATH=/usr/local/bin:/usr/bin:/bin\nMULTILOCK_DIR=/shared/jobs\nMULTILOCK_REQUIRE_SHARED=1\n"
	const jobs = "mkdir /shared/jobs; multilock -d /shared/jobs doctor -q --mark || test $? = 1"
	// Only cron sees the line's minute: multilock uses the server's time, and warns.
	const early = `^$|job "(hourly|report)" runs .* (before|after) its tick`
	return []scene{
		{has: "MAILTO=ops@example.org", play: crontab{now: "01:59:57", before: jobs, calls: map[string]int{"nightly.sh": 1}}.play},
		{has: "--on-overrun", play: func(t *testing.T, b block) {
			p := newPlace(t)
			for line := range strings.Lines(b.text) {
				p.sh("multilock -d /shared run -n nightly " + strings.TrimSpace(line) + " -- false")
			}
			calls := p.calls()
			require.Len(t, calls, 1)
			require.Regexp(t, "^mail -s nightly: .+ ops@example.org$", calls[0])
		}},
		{has: "MULTILOCK_PING", play: func(t *testing.T, b block) {
			asked := watcher(t, "hc-ping.com")
			commands{calls: []string{"nightly.sh"}, before: jobs}.play(t, block{b.doc, b.line, "export MULTILOCK_DIR=/shared/jobs\n" + b.text})
			require.Contains(t, asked(), "/UUID") // the start ping is omitted if the job has already ended
		}},
		{has: "*/10 2-3", play: crontab{now: "01:59:57", also: above, before: jobs, calls: map[string]int{"nightly.sh": 1}}.play},
		{has: "-n hourly", play: func(t *testing.T, b block) {
			crontab{now: "00:29:57", also: above, before: jobs, calls: map[string]int{"hourly.sh": 1}, mail: early}.play(t, b)
			crontab{now: "07:29:57", also: above, before: jobs, calls: map[string]int{"hourly.sh": 1, "report.sh": 1}, mail: early}.play(t, b)
		}},
		{has: "--catch-up", play: crontab{now: "00:09:57", also: above, before: jobs, calls: map[string]int{"report.sh": 1, "import.sh": 1}}.play},
		{has: "update-if-newer", play: func(t *testing.T, b block) {
			commands{hosts: true, before: jobs + "; echo 1 >report.sql", calls: []string{"update-if-newer --fence 1"}}.
				play(t, block{b.doc, b.line, "export MULTILOCK_DIR=/shared/jobs\n" + b.text})
		}},
		{has: "history nightly", play: commands{
			before: jobs + "; multilock -d /shared/jobs run -n nightly --every 1d -- true",
			says:   map[string]string{"status": "nightly", "history": "released"},
		}.play},
	}
}

func monitoring() []scene {
	const base = "mkdir -p /shared/jobs; "
	const jobs = base + "multilock -d /shared/jobs run -q -n nightly --every 1d -- true; multilock -d /shared/jobs run -q -n backup --every 1d -- true; "
	return []scene{
		{has: "--expect-every", play: commands{before: jobs, says: map[string]string{"overdue": "^OVERDUE OK"}}.play},
		{has: "overdue -q", play: func(t *testing.T, b block) {
			crontab{now: "00:16:57", before: jobs, calls: map[string]int{}}.play(t, b)
			crontab{
				now: "00:16:57", before: base + "! multilock -d /shared/jobs run -n nightly --every 1d -- false", calls: map[string]int{},
				mail: "(?s)To: ops@example.org.*nightly",
			}.play(t, b)
		}},
		{has: "clean --results nightly", play: commands{before: base + "multilock -d /shared/jobs run -q -n backup --every 1d -- true; ! multilock -d /shared/jobs run -n nightly --every 1d -- false", after: "multilock -d /shared/jobs overdue"}.play},
		{has: "--textfile", play: crontab{
			now: "00:00:57", before: jobs + "mkdir -p /var/lib/node_exporter", calls: map[string]int{},
			after: "grep -q multilock_ /var/lib/node_exporter/multilock.prom",
		}.play},
	}
}

// watcher starts a web server with this name and a certificate that the world trusts.
func watcher(t *testing.T, name string) (asked func() []string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll("/etc/ssl/certs", 0o755))
	require.NoError(t, os.WriteFile("/etc/ssl/certs/ca-certificates.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	names, err := os.OpenFile("/etc/hosts", os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = names.WriteString("127.0.2.1 " + name + "\n")
	require.NoError(t, err)
	require.NoError(t, names.Close())

	var mu sync.Mutex
	var paths []string
	listener, err := net.Listen("tcp", "127.0.2.1:443")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: limit, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.URL.Path)
	})}
	tlsListener := tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	go func() { _ = server.Serve(tlsListener) }()
	t.Cleanup(func() { _ = server.Close() })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return paths
	}
}
