package nfs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
)

// alice is a user on the lab's hosts.
const alice = 1001

// kerberized starts a realm, and returns a place that belongs to a user, and hosts that mount it
// with each flavor.
func kerberized(t *testing.T, owner int, flavors ...string) (p place, all []host) {
	t.Helper()
	needLab(t)
	if testing.Short() {
		t.Skip("boots more hosts and a KDC")
	}
	lab(t, "kerberos", "start")
	t.Cleanup(func() { lab(t, "server", "security", "sys") })
	for _, flavor := range flavors {
		all = append(all, addHost(t, flavor, "4.2", "hard,sec="+flavor))
	}
	p = newPlace(t)
	require.NoError(t, os.Chown(p.stored(), owner, owner))
	return p, all
}

// Locks, fencing numbers and results pass from host to host, whatever protects the requests. To the
// server, root on such a host is another user.
// Rule: commit, fence
func TestKerberos(t *testing.T) {
	flavors := []string{"krb5", "krb5i"}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err != nil || !strings.HasPrefix(string(release), "6.1.") {
		flavors = append(flavors, "krb5p") // the kernel of Debian 12 cannot mount krb5p from itself (EIO)
	}
	p, all := kerberized(t, nobody, flavors...)
	squash(t)
	for i, h := range all {
		inside := place{filepath.Join(p.name, h.name)}
		require.NoError(t, os.Mkdir(inside.stored(), 0o755))
		require.NoError(t, os.Chown(inside.stored(), nobody, nobody))
		handOver(t, inside, h, append(all, hosts()[0])[i+1])
	}
}

// asAlice starts an actor that runs as alice.
func asAlice(t *testing.T, h host, p place) remote {
	t.Helper()
	a := remote{actor.Prepare(t, "actor", p.on(h), "on", h.name, "setpriv", "--reuid", "alice", "--clear-groups"), h}
	a.Start(t)
	return a
}

func giveTicket(t *testing.T, h host, life time.Duration) {
	t.Helper()
	lab(t, "kerberos", "ticket", h.name, "alice", strconv.Itoa(int(life.Seconds())))
}

// awaitExpiry waits until the ticket no longer gives access to the server's files.
func awaitExpiry(t *testing.T, h host) {
	t.Helper()
	eventually(t, "the ticket ends", func() bool {
		return exec.Command("on", h.name, "setpriv", "--reuid", "alice", "--clear-groups", "stat", "-f", h.mount).Run() != nil
	})
}

const ticketLife = 15 * time.Second

// A holder whose ticket expires cannot send heartbeats. With a new ticket in time it continues, and
// no other process acquires the lock in between.
// Rule: heartbeat, I1
func TestTicketIsRenewedInTime(t *testing.T) {
	p, all := kerberized(t, alice, "krb5")
	giveTicket(t, all[0], ticketLife)
	holder, waiter := asAlice(t, all[0], p), asAlice(t, hosts()[0], p)
	token := holder.must(t, order{Do: "acquire", Name: "job", TTL: 10 * time.Minute}).Token
	awaitExpiry(t, all[0])
	require.Contains(t, holder.do(t, order{Do: "verify"}).Error, "key has expired")
	seen := waiter.do(t, order{Do: "try", Name: "job", TTL: long})
	require.Equal(t, []string{token, "held"}, []string{seen.Token, seen.State})
	giveTicket(t, all[0], time.Hour)
	eventually(t, "the holder can work again", func() bool { return holder.do(t, order{Do: "verify"}).Error == "" })
	holder.must(t, order{Do: "release"})
}

// Without a new ticket, a holder loses the lock after its TTL, and notices; another host takes the
// lock over.
// Rule: validity, loss, silence
func TestTicketThatEnds(t *testing.T) {
	p, all := kerberized(t, alice, "krb5")
	giveTicket(t, all[0], ticketLife)
	holder, heir := asAlice(t, all[0], p), asAlice(t, hosts()[0], p)
	holder.must(t, order{Do: "acquire", Name: "job", TTL: 20 * time.Second})
	require.Contains(t, holder.do(t, order{Do: "await loss"}).Error, "is lost")
	heir.must(t, order{Do: "acquire", Name: "job", TTL: long})
	require.NotEmpty(t, holder.do(t, order{Do: "release"}).Error)
	heir.must(t, order{Do: "verify"})
	heir.must(t, order{Do: "release"})
}
