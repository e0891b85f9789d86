package shareddir

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// The options are those of /proc/self/mountinfo on Linux 6.1.
func TestFindingsOfAMount(t *testing.T) {
	t.Parallel()
	const nfs = "rw,relatime,vers=4.2,rsize=262144,wsize=262144,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.2,local_lock=none,addr=10.0.0.1"
	for name, c := range map[string]struct {
		kind, options string
		text          string   // of the first finding
		others        []string // each is the severity and a part of the text
	}{
		"NFS as it should be": {"nfs4", nfs, "/shared, type nfs4, from server:/export, NFS 4.2: hard,proto=tcp,timeo=600,retrans=2,local_lock=none",
			[]string{"fine: exports it with sync"}},
		"soft": {"nfs4", strings.Replace(nfs, "hard", "soft", 1), "soft,proto=tcp", []string{"fine: exports", "warning: it is a soft mount"}},
		"softerr, nocto": {"nfs4", strings.Replace(nfs, "hard", "softerr,nocto", 1), "softerr,nocto",
			[]string{"fine: exports", "warning: it is a soft mount", "warning: with nocto"}},
		"noac, version 3": {"nfs", "rw,vers=3,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0,hard,noac,nolock,local_lock=all", "NFS 3: acregmin=0,acregmax=0,acdirmin=0,acdirmax=0,hard,noac,nolock,local_lock=all",
			[]string{"fine: exports", "fine: caches are turned off"}},
		"lookupcache=none":               {"nfs4", nfs + ",lookupcache=none", "lookupcache=none", []string{"fine: exports", "fine: caches are turned off"}},
		"not NFS":                        {"ext4", "rw,relatime,errors=remount-ro", "/shared, type ext4, from server:/export", nil},
		"soft is no word of NFS's alone": {"fuse.sshfs", "ro,soft,user_id=0", "type fuse.sshfs, from server:/export: ro,soft", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := mount{point: "/shared", kind: c.kind, from: "server:/export", options: strings.Split(c.options, ",")}.findings()
			require.Equal(t, source.SeverityFine, found[0].Severity)
			require.Contains(t, found[0].Text, c.text)
			require.Len(t, found, 1+len(c.others))
			for i, want := range c.others {
				require.Equal(t, want[:strings.Index(want, ":")], string(found[i+1].Severity))
				require.Contains(t, found[i+1].Text, want[strings.Index(want, ":")+2:])
				require.NotEmpty(t, found[i+1].Advice)
			}
		})
	}
}
