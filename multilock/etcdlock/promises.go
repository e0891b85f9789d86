package etcdlock

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
)

var (
	_ source.Describer = (*Source)(nil)
	_ source.Examiner  = (*Source)(nil)
)

// Promises implements source.Describer.
func (s *Source) Promises() []source.Promise {
	return append(s.Alike(),
		source.Keeps(source.TraitSafeSilence, "a holder stops believing in its lock after four fifths of its TTL without a sign of life that most members have acknowledged; its lease lasts a second longer than the TTL"),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or when the server has ended its lease"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's record"),
		source.Keeps(source.TraitPromptRelease, "one transaction removes it, and wakes the first of those who wait"),
		source.Keeps(source.TraitFenceNumbers, "the store's revision; they begin anew if the store is restored without --bump-revision"),
		source.Keeps(source.TraitQueue, "in the order of arrival, for one lock also without being asked"),
		source.Lacks(source.TraitOneClock, "etcd tells nobody what time it is, and its members have a clock each"),
		source.Keeps(source.TraitCheapBarrier, "a count at one revision, which most members have acknowledged"),
		source.Keeps(source.TraitResults, "keys beside the locks, written by the lock's holder alone"),
		source.Keeps(source.TraitManifest, "parts of 1 MiB, 64 MiB at most, which the first host publishes in one step"),
		source.Keeps(source.TraitHistory, "keys that are kept for 90 days; what cannot be written is not in it"),
	)
}

// Examine implements source.Examiner.
func (s *Source) Examine(ctx context.Context) []source.Finding {
	key := s.root + "doctor"
	_, _, err := s.commit(ctx, transaction{then: []clientv3.Op{clientv3.OpPut(key, ""), clientv3.OpGet(key)}})
	if err == nil {
		_, _, err = s.commit(ctx, transaction{then: []clientv3.Op{clientv3.OpDelete(key)}})
	}
	if err != nil {
		return []source.Finding{{Subject: "server", Severity: source.SeverityUnusable, Text: s.opError(ctx, "write and read a key", "", err).Error()}}
	}
	return append(s.findMembers(ctx), s.findAlarms(ctx)...)
}

// findMembers looks how many there are, and asks each.
func (s *Source) findMembers(ctx context.Context) []source.Finding {
	var members *clientv3.MemberListResponse
	_, err := s.repeat(ctx, s.timeout, func(ctx context.Context, c *clientv3.Client) (err error) {
		members, err = c.MemberList(ctx)
		return err
	})
	if err != nil {
		return []source.Finding{s.unasked("members", err)}
	}
	voters := 0
	for _, m := range members.Members {
		if !m.IsLearner {
			voters++
		}
	}
	found := source.Finding{Subject: "members", Severity: source.SeverityFine, Text: fmt.Sprintf("%d members that vote; all goes on while %d of them work", voters, voters/2+1)}
	if voters < 3 {
		found.Severity, found.Advice = source.SeverityWarning, "use three members, on three machines"
		found.Text = fmt.Sprintf("%d member(s) that vote: if one is down nobody can lock", voters)
	}
	findings := []source.Finding{found}
	for _, endpoint := range s.at.endpoints {
		findings = append(findings, s.findMember(ctx, endpoint))
	}
	return findings
}

// crowded is the size of a store that is near the usual limit of 2 GB.
const crowded = 1500 << 20

func (s *Source) findMember(ctx context.Context, endpoint string) source.Finding {
	var status *clientv3.StatusResponse
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	client, err := s.connect()
	if err == nil {
		status, err = client.Status(ctx, endpoint)
	}
	found := source.Finding{Subject: "server", Severity: source.SeverityFine}
	switch {
	case err != nil:
		found.Severity, found.Text, found.Advice = source.SeverityWarning, fmt.Sprintf("%s does not answer: %v", endpoint, err), "locks go on without it, but not without one more"
		return found
	case status.DbSize > crowded:
		found.Severity, found.Advice = source.SeverityWarning, "compact and defragment it (--auto-compaction-retention does the first by itself), or raise --quota-backend-bytes"
	case oldVersion(status.Version):
		found.Severity, found.Advice = source.SeverityWarning, "use 3.5.9 or later: in older ones a leader that stood still may end the leases of holders that are alive"
	}
	found.Text = fmt.Sprintf("%s is etcd %s, with %d MB", endpoint, status.Version, status.DbSize>>20)
	return found
}

// oldVersion says that a leader may end leases without asking whether it still is the leader.
func oldVersion(version string) bool {
	var major, minor, patch int
	if n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); n < 3 {
		return false
	}
	return major < 3 || major == 3 && (minor < 5 || minor == 5 && patch < 9)
}

func (s *Source) findAlarms(ctx context.Context) []source.Finding {
	var alarms *clientv3.AlarmResponse
	_, err := s.repeat(ctx, s.timeout, func(ctx context.Context, c *clientv3.Client) (err error) {
		alarms, err = c.AlarmList(ctx)
		return err
	})
	if err != nil {
		return []source.Finding{s.unasked("alarms", err)}
	}
	for _, a := range alarms.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NONE {
			return []source.Finding{{Subject: "alarms", Severity: source.SeverityUnusable, Text: "a member has raised the alarm " + a.Alarm.String(), Advice: "see: etcdctl alarm list"}}
		}
	}
	return []source.Finding{{Subject: "alarms", Severity: source.SeverityFine, Text: "there are none"}}
}

// unasked is what only some may ask, and nothing depends on.
func (s *Source) unasked(subject string, err error) source.Finding {
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		return source.Finding{Subject: subject, Severity: source.SeverityFine, Text: "this user may not ask for them"}
	}
	return source.Finding{Subject: subject, Severity: source.SeverityWarning, Text: err.Error()}
}
