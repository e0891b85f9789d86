package pglock

import (
	"context"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	_ source.Describer = (*Source)(nil)
	_ source.Examiner  = (*Source)(nil)
)

// Guarantees implements source.Describer.
func (s *Source) Guarantees() []source.Guarantee {
	return append(s.Alike(),
		source.Keeps(source.TraitSafeSilence, "a holder gives its lock up after four fifths of its TTL without a heartbeat that the server has committed; an asynchronous standby may lack it when promoted"),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or when its whole TTL passed without a heartbeat by the server's clock, and none came while another process watched"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's record"),
		source.Keeps(source.TraitPromptRelease, "one transaction removes its row and notifies the first waiter; behind a pooler, waiters poll once a second"),
		source.Keeps(source.TraitFenceNumbers, "a sequence; a promoted asynchronous standby may go back to smaller ones"),
		source.Keeps(source.TraitQueue, "in the order of arrival; for one lock also without --fair"),
		source.Keeps(source.TraitOneClock, "the server's; a failover changes the server, so keep the servers' clocks in step"),
		source.Keeps(source.TraitCheapBarrier, "one query of an index, at one instant of the primary"),
		source.Keeps(source.TraitResults, "rows beside the locks, which only the lock's holder writes"),
		source.Keeps(source.TraitManifest, "parts of 1 MiB, 64 MiB at most, which the first host publishes in one step"),
		source.Keeps(source.TraitHistory, "rows, for at least 90 days; events that cannot be written are missing"),
	)
}

// Examine implements source.Examiner. It creates the schema if it is missing, and tries to write.
func (s *Source) Examine(ctx context.Context) []source.Finding {
	f, err := s.ready(ctx, false)
	if err == nil {
		err = s.Try(ctx)
	}
	var answers []answer
	if err == nil {
		answers, _, err = s.request(ctx, false, 0, func() []statement {
			return []statement{s.sql(`SELECT current_setting('fsync'), current_setting('synchronous_standby_names'), (SELECT count(*) FROM pg_stat_replication), ` + micros)}
		})
	}
	if err != nil {
		return []source.Finding{source.Unusable("server", s.OpError(ctx, "look at the server", "", err).Error(), "")}
	}
	set := answers[0][0]
	return []source.Finding{
		source.Fine("server", fmt.Sprintf("PostgreSQL %d.%d, the schema %s", f.version/10000, f.version%10000, s.named)),
		findDisk(set.text(0)), findCommit(f), findStandbys(set.text(1), set.number(2)), s.findListening(ctx), remote.FindClock(time.UnixMicro(set.number(3))),
	}
}

func findDisk(fsync string) source.Finding {
	if fsync != "on" {
		return source.Warning("fsync", "fsync is off: a crash of the server's machine can lose locks that are held, or the whole database", "set fsync = on in the server's configuration")
	}
	return source.Fine("fsync", "commits are on disk")
}

func findCommit(f facts) source.Finding {
	const subject = "commit"
	text := "synchronous_commit is " + f.committing
	if f.waits() {
		return source.Fine(subject, text)
	}
	return source.Warning(subject, text+" for this user: multilock turns it on in its own transactions, but a crash can lose what other programs write",
		"set synchronous_commit = on, at least for this user")
}

func findStandbys(waited string, attached int64) source.Finding {
	const subject = "standbys"
	switch {
	case waited == "" && attached > 0:
		return source.Warning(subject, fmt.Sprintf("commits do not wait for the %d standby(s): a promoted one can lack the latest locks and results, so that two hosts hold one lock", attached),
			"set synchronous_standby_names")
	case waited == "":
		return source.Warning(subject, "no standby: while this server is down no lock can be acquired, and if its disk is lost, so are all locks, also those that are held",
			"add a standby, and set synchronous_standby_names")
	case attached == 0:
		return source.Warning(subject, "commits wait for "+waited+", and no standby is attached", "start or replace the standby: nothing can be committed without it")
	}
	return source.Fine(subject, "commits wait for "+waited)
}

// findListening reports whether waiters can be notified.
func (s *Source) findListening(ctx context.Context) source.Finding {
	conn, err := s.waiters.connect(ctx)
	if err != nil {
		return source.Warning("waiting", err.Error()+": waiters poll once a second", "connect to the server directly, not through a pooler, for faster handoffs")
	}
	hangUp(conn)
	return source.Fine("waiting", "a release notifies waiters at once")
}
