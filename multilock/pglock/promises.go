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

// Promises implements source.Describer.
func (s *Source) Promises() []source.Promise {
	return append(s.Alike(),
		source.Keeps(source.TraitSafeSilence, "a holder stops believing in its lock after four fifths of its TTL without a heartbeat that the server has committed; a standby that was not waited for may not have it when it is promoted"),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or when it was silent for the whole TTL by the server's clock, and none came while somebody watched"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's record"),
		source.Keeps(source.TraitPromptRelease, "one transaction removes its row, and tells the first of those who wait; behind a pooler he asks once a second"),
		source.Keeps(source.TraitFenceNumbers, "a sequence, which a standby that was not waited for may have to repeat"),
		source.Keeps(source.TraitQueue, "in the order of arrival, for one lock also without being asked"),
		source.Keeps(source.TraitOneClock, "the server's; after a failover it is another one's, so the servers need clocks that agree"),
		source.Keeps(source.TraitCheapBarrier, "one query of an index, at one instant of the primary"),
		source.Keeps(source.TraitResults, "rows beside the locks, written by the lock's holder alone"),
		source.Keeps(source.TraitManifest, "parts of 1 MiB, 64 MiB at most, which the first host publishes in one step"),
		source.Keeps(source.TraitHistory, "rows that are kept for 90 days at least; what cannot be written is not in it"),
	)
}

// Examine implements source.Examiner. It makes the schema, if there is none, and tries to write.
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
		return source.Warning("fsync", "fsync is off: a machine that crashes may lose locks that are held, or all of the database", "turn it on")
	}
	return source.Fine("fsync", "what is committed is on disk")
}

func findCommit(f facts) source.Finding {
	const subject = "commit"
	text := "synchronous_commit is " + f.committing
	if f.waits() {
		return source.Fine(subject, text)
	}
	return source.Warning(subject, text+" for this user: here it is turned on in each transaction, but what other programs write may be lost in a crash",
		"set it to on, at least for this user")
}

func findStandbys(waited string, attached int64) source.Finding {
	const subject = "standbys"
	switch {
	case waited == "" && attached > 0:
		return source.Warning(subject, fmt.Sprintf("%d standby(s) that commits do not wait for: one that is promoted may not know the locks of the last moments, so that two hold one, nor the last results", attached),
			"set synchronous_standby_names")
	case waited == "":
		return source.Warning(subject, "there are none: while this server is down nobody can lock, and a disk that is lost takes the locks along, also those that are held",
			"have a standby, with synchronous_standby_names")
	case attached == 0:
		return source.Warning(subject, "commits wait for "+waited+", and no standby is attached", "look after the standby: without it nothing can be committed")
	}
	return source.Fine(subject, "commits wait for "+waited)
}

// findListening says whether somebody can tell those who wait.
func (s *Source) findListening(ctx context.Context) source.Finding {
	conn, err := s.crowd.hear(ctx)
	if err != nil {
		return source.Warning("waiting", err.Error()+": who waits asks once a second", "for waits of less, talk to the server itself")
	}
	hangUp(conn)
	return source.Fine("waiting", "a release is told to who waits")
}
