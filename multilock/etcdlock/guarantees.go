package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/multilock/go/multilock/source"
)

var (
	_ source.Describer = (*Source)(nil)
	_ source.Examiner  = (*Source)(nil)
)

// Guarantees implements source.Describer.
func (s *Source) Guarantees() []source.Guarantee {
	return append(s.Alike(),
		source.Keeps(source.TraitSafeSilence, "a holder gives its lock up after four fifths of its TTL without a heartbeat that most members have acknowledged; its lease lasts a second longer than the TTL"),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or when the server has ended its lease"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's record"),
		source.Keeps(source.TraitPromptRelease, "one transaction removes it and wakes the first waiter"),
		source.Keeps(source.TraitFenceNumbers, "the store's revision; it starts again if the store is restored without --bump-revision"),
		source.Keeps(source.TraitQueue, "in the order of arrival; for one lock also without --fair"),
		source.Lacks(source.TraitOneClock, "etcd does not report the time, and each member has its own clock"),
		source.Keeps(source.TraitCheapBarrier, "a count at one revision, which most members have acknowledged"),
		source.Keeps(source.TraitResults, "keys beside the locks, which only the lock's holder writes"),
		source.Keeps(source.TraitManifest, "parts of 1 MiB, 64 MiB at most, which the first host publishes in one step"),
		source.Keeps(source.TraitHistory, "keys, for 90 days; events that cannot be written are missing"),
	)
}

// Examine implements source.Examiner.
func (s *Source) Examine(ctx context.Context) []source.Finding {
	if err := s.Try(ctx); err != nil {
		return []source.Finding{source.Unusable("server", err.Error(), "")}
	}
	members := func(ctx context.Context, c *clientv3.Client) (*clientv3.MemberListResponse, error) {
		return c.MemberList(ctx)
	}
	findings := []source.Finding{find(ctx, s, "members", members, findMembers)}
	for _, endpoint := range s.at.endpoints {
		findings = append(findings, s.findMember(ctx, endpoint))
	}
	alarms := func(ctx context.Context, c *clientv3.Client) (*clientv3.AlarmResponse, error) {
		return c.AlarmList(ctx)
	}
	return append(findings, find(ctx, s, "alarms", alarms, findAlarms))
}

// findMembers checks the number of voting members.
func findMembers(members *clientv3.MemberListResponse) source.Finding {
	voters := 0
	for _, m := range members.Members {
		if !m.IsLearner {
			voters++
		}
	}
	if voters < 3 {
		return source.Warning("members", fmt.Sprintf("%d voting member(s): if one is down, no lock can be acquired", voters), "use three members, on three machines")
	}
	return source.Fine("members", fmt.Sprintf("%d voting members, of which %d must be up", voters, voters/2+1))
}

// crowded is a database size near the default quota of 2 GB.
const crowded = 1500 << 20

func (s *Source) findMember(ctx context.Context, endpoint string) source.Finding {
	const subject = "server"
	var status *clientv3.StatusResponse
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	client, err := s.connect()
	if err == nil {
		status, err = client.Status(ctx, endpoint)
	}
	if err != nil {
		return source.Warning(subject, fmt.Sprintf("%s does not answer: %v", endpoint, err), "start it again: locks work without it, but not if one more fails")
	}
	text := fmt.Sprintf("%s is etcd %s, with %d MB", endpoint, status.Version, status.DbSize>>20)
	switch {
	case status.DbSize > crowded:
		return source.Warning(subject, text, "compact and defragment it (--auto-compaction-retention does the first by itself), or raise --quota-backend-bytes")
	case oldVersion(status.Version):
		return source.Warning(subject, text, "use etcd 3.5.9 or later: in older versions a leader that was paused can end the leases of live holders")
	}
	return source.Fine(subject, text)
}

// oldVersion reports whether a leader of this version may end leases without checking that it still
// is the leader.
func oldVersion(version string) bool {
	var major, minor, patch int
	n, _ := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch)
	return n == 3 && slices.Compare([]int{major, minor, patch}, []int{3, 5, 9}) < 0
}

func findAlarms(alarms *clientv3.AlarmResponse) source.Finding {
	for _, a := range alarms.Alarms {
		if a.Alarm != etcdserverpb.AlarmType_NONE {
			return source.Unusable("alarms", "a member has raised the alarm "+a.Alarm.String(), "see: etcdctl alarm list")
		}
	}
	return source.Fine("alarms", "none")
}

// find makes a request that requires privileges and is optional for locks.
func find[A any](ctx context.Context, s *Source, subject string, ask func(context.Context, *clientv3.Client) (A, error), judge func(A) source.Finding) source.Finding {
	var answer A
	_, err := s.repeat(ctx, s.timeout, func(ctx context.Context, c *clientv3.Client) (err error) {
		answer, err = ask(ctx, c)
		return err
	})
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return source.Fine(subject, "this user is not allowed to list them")
	case err != nil:
		return source.Warning(subject, err.Error(), "")
	}
	return judge(answer)
}
