package fslock

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// initialNamespace is the pid namespace of a Linux host itself (the kernel's
// PROC_PID_INIT_INO), as it stands in an Identity.
const initialNamespace = "pid:[4026531836]"

// findPeer says what this host knows of the process of a Python MultiLock, of which there
// is a host's name and a pid. Nothing, if the name is another host's, or if this process
// does not see all processes of the host. The pid may be another process's by now: that it
// exists proves little, and that it does not proves much.
func findPeer(r source.Record, self process.Identity) process.Evidence {
	if r.Token != "" || r.Foreign != "" || r.Holder.PID <= 0 || r.Holder.Host != self.Host || !seesTheHost(self) {
		return process.Evidence{}
	}
	switch _, err := process.Find(r.Holder.PID); {
	case err == nil:
		return process.Evidence{Life: process.Alive, Why: fmt.Sprintf("process %d lives on this host", r.Holder.PID)}
	case errors.Is(err, process.ErrNotFound):
		return process.Evidence{Life: process.Gone, Why: fmt.Sprintf("there is no process %d on this host", r.Holder.PID)}
	}
	return process.Evidence{}
}

func seesTheHost(self process.Identity) bool {
	return strings.HasPrefix(self.Namespace, initialNamespace) || self.Namespace == runtime.GOOS
}

// judgePeer decides about a Python MultiLock by what is known of its process. One that
// lives is spared whatever its age. Where such peers are reckoned with, one that does not
// exist is dead, as it is for other peers; that is watched for as long as a limbo, lest the
// peer has been slow only.
func judgePeer(e evidence) (v source.Verdict, certain bool) {
	switch {
	case e.peer.Life == process.Alive:
		const spared = "; --max-age spares it, and only break --force can clear it"
		return source.Verdict{State: source.StateHeld, Why: "it was taken by a Python MultiLock, and " + e.peer.Why + spared, Next: glance}, true
	case e.peer.Life == process.Gone && e.legacy && (e.MaxAge == 0 || e.MaxAge > limboLimit):
		v = judgeSilence(e, source.Limit{Silence: limboLimit, Window: limboWindow, Why: "it is cleared if nothing changes"})
		v.Why = "it was taken by a Python MultiLock, and " + e.peer.Why + ": " + v.Why
		return v, true
	}
	return source.Verdict{}, false
}
