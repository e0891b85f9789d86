package process

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// JobMark identifies the processes of a job, whatever group or session they move to: by an entry in the
// environment that each was started with.
type JobMark struct {
	// Token is the lock's token, which others can read. The entry is TokenEntry(Token), unless there is a
	// KeyDigest.
	Token string
	// KeyDigest is the digest of the JobKey in the entry.
	KeyDigest string
}

// TokenEntry is the entry with a lock's token, for processes that are started as a job under the lock.
func TokenEntry(token string) string { return tokenVariable + "=" + token }

// JobKey is a secret of a job's processes. Other processes cannot pass for one of them by what they can
// read of the lock, because the record only has the key's digest.
type JobKey string

// NewJobKey returns a key that cannot be guessed.
func NewJobKey() JobKey { return JobKey(rand.Text()) }

// Entry is the entry with the key, for the environment of the job.
func (k JobKey) Entry() string { return keyVariable + "=" + string(k) }

// Digest is the form of the key in a record; "" without a key.
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

// JudgeJob reports whether a process of the job of id, the holder of a lock, is alive: any process that id
// has started as its job, or that one of those has started. They have the mark in the environment that they
// were started with (proc_pid_environ(5)). self must be the identity of the calling process.
//
// Gone means that every process of the host that may be one of them could be inspected: those that started
// no earlier than id. A process of another user, one behind hidepid and one that is just executing a
// program may belong to the job, and make the answer Unknown, unless another process shows that the job is
// Alive. The answer is also Unknown on systems that do not show the environment of processes, which are all
// but Linux, and where a pid means nothing here, as for [Identity.Judge].
//
// A process that was started with another environment, or has overwritten its own, is not found. A search
// costs one pass over all processes of the host if one is found, and three or more to prove that there is
// none.
func (id Identity) JudgeJob(mark JobMark, self Identity) Evidence {
	if why := elsewhere(id, self); why != "" {
		return evidence(Unknown, "its job %s", why)
	}
	return judgeJob(mark, id.Start)
}

// JobWatch judges a holder's job repeatedly, for an observer. On a host whose processes come and go faster
// than they can be inspected, a search takes a second or more and finds nothing out. Its answer is then
// reused for ten times as long as the search took: there the missing heartbeat has to decide, which only an
// observer sees that inspects the lock in between. The zero JobWatch is ready for use.
type JobWatch struct {
	mark  JobMark
	last  Evidence
	until time.Time // until when last is reused
}

const restAfterSearch = 10

// Judge returns the result of id.JudgeJob, perhaps an earlier one.
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
