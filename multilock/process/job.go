package process

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// JobMark is how the processes of a job are known, whatever group or session they move to: by
// an entry in the environment that each was started with.
type JobMark struct {
	// Token is the lock's, which others can read. The entry is TokenEntry(Token), unless there
	// is a KeyDigest.
	Token string
	// KeyDigest is that of the JobKey that is in the entry then.
	KeyDigest string
}

// TokenEntry is the entry with a lock's token. Whoever starts a job under a lock sets it.
func TokenEntry(token string) string { return tokenVariable + "=" + token }

// JobKey is a secret of a job's processes. What others can read of their lock does not let
// them pass for one: the record has the key's digest.
type JobKey string

// NewJobKey returns a key that nobody can guess.
func NewJobKey() JobKey { return JobKey(rand.Text()) }

// Entry is the entry with the key, for the environment of the job.
func (k JobKey) Entry() string { return keyVariable + "=" + string(k) }

// Digest is what a record has of the key; "" without one.
func (k JobKey) Digest() string {
	if k == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(k))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

const (
	tokenVariable = "MULTILOCK_TOKEN"
	keyVariable   = "MULTILOCK_JOB_KEY"
)

// JudgeJob says whether any process lives that id, the holder of a lock, has started as its
// job, or that was started by one of those: any that has the mark in the environment it was
// started with (proc_pid_environ(5)). self must be the identity of the calling process.
//
// Gone means that every process of the host which may be one of them could be looked
// at: those that started no earlier than id. One of another user, one behind hidepid
// and one that is just executing a program may be of the job, and makes the answer
// Unknown, unless another one shows that it is Alive. So do systems that do not show
// the environment of processes, which are all but Linux, and all that makes a pid mean
// nothing here, as for [Identity.Judge].
//
// A process that was started with another environment, or has overwritten its own, is
// not found. It costs one pass over all processes of the host if one is found, and
// three or more to prove that there is none.
func (id Identity) JudgeJob(mark JobMark, self Identity) Evidence {
	if why := elsewhere(id, self); why != "" {
		return evidence(Unknown, "its job %s", why)
	}
	return judgeJob(mark, id.Start)
}

// JobWatch judges a holder's job again and again, for an observer. On a host whose
// processes come and go faster than they can be looked at, a search takes a second or
// more and comes to nothing. Its answer then stands for ten times as long as it took:
// silence is to decide there, and is only seen by who looks at the lock in between. The
// zero JobWatch is ready to be used.
type JobWatch struct {
	mark  JobMark
	last  Evidence
	until time.Time // when the last answer stood long enough
}

const restAfterSearch = 10

// Judge is what id.JudgeJob says, or said.
func (w *JobWatch) Judge(id Identity, mark JobMark, self Identity) Evidence {
	return w.judge(mark, func() Evidence { return id.JudgeJob(mark, self) })
}

func (w *JobWatch) judge(mark JobMark, search func() Evidence) Evidence {
	if w.mark == mark && w.last.Life == Unknown && time.Now().Before(w.until) {
		return w.last
	}
	start := time.Now()
	w.mark, w.last = mark, search()
	w.until = time.Now().Add(restAfterSearch * time.Since(start))
	return w.last
}
