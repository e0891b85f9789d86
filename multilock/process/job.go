package process

import "time"

// JobMark is the entry that all processes of a job have in their environment, by which
// they are known to belong to the lock with that token, whatever group or session they
// move to. Whoever starts a job under a lock sets it.
func JobMark(token string) string { return "MULTILOCK_TOKEN=" + token }

// JudgeJob says whether any process lives that id, the holder of the lock with that
// token, has started as its job, or that was started by one of those: any that has
// JobMark(token) in the environment it was started with (proc_pid_environ(5)). self
// must be the identity of the calling process.
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
func (id Identity) JudgeJob(token string, self Identity) Evidence {
	if why := elsewhere(id, self); why != "" {
		return evidence(Unknown, "its job %s", why)
	}
	return judgeJob(JobMark(token), id.Start)
}

// JobWatch judges a holder's job again and again, for an observer. On a host whose
// processes come and go faster than they can be looked at, a search takes a second or
// more and comes to nothing. Its answer then stands for ten times as long as it took:
// silence is to decide there, and is only seen by who looks at the lock in between. The
// zero JobWatch is ready to be used.
type JobWatch struct {
	token string
	last  Evidence
	until time.Time // when the last answer stood long enough
}

const restAfterSearch = 10

// Judge is what id.JudgeJob says, or said.
func (w *JobWatch) Judge(id Identity, token string, self Identity) Evidence {
	return w.judge(token, func() Evidence { return id.JudgeJob(token, self) })
}

func (w *JobWatch) judge(token string, search func() Evidence) Evidence {
	if w.token == token && w.last.Life == Unknown && time.Now().Before(w.until) {
		return w.last
	}
	start := time.Now()
	w.token, w.last = token, search()
	w.until = time.Now().Add(restAfterSearch * time.Since(start))
	return w.last
}
