package shareddir

import (
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"
)

// Examine looks at the mount, tries out the filesystem's rules, compares the clocks, and
// looks whose the files are in .multilock and in the group. It writes in .multilock alone.
func (b *Base) Examine(group string) []source.Finding {
	rules := b.examineRules()
	found := append(b.examineMount(), rules)
	if rules.Severity != source.SeverityUnusable { // the clock is read in the same way, and would fail alike
		found = append(found, b.examineClock())
	}
	found = append(found, b.examineName()...)
	return append(found, b.examineTrust([]string{PrivateDir, group})...)
}

func (b *Base) examineMount() []source.Finding {
	found := []source.Finding{source.Fine("mount", "filesystem type "+b.Kind.Type)}
	m, err := mountOf(b.Dir)
	if err != nil {
		found[0].Text += "; " + err.Error()
	} else {
		found = m.findings()
	}
	if info, err := b.Stat(); err == nil { // the server's number on NFS, so the same on all hosts
		found[0].Text += fmt.Sprintf(", inode %d", info.Inode)
	}
	if kind := b.OneHost(); kind != "" {
		found = append(found, source.Warning("mount", fmt.Sprintf("this filesystem (%s) is local: other hosts do not see its locks", kind),
			"to share locks between hosts, use -d with a directory on a shared filesystem, and check that it is mounted"))
	}
	return found
}

// examineRules makes the filesystem's test, whatever an earlier one found.
func (b *Base) examineRules() source.Finding {
	found, err := b.testRepeatedly()
	if err == nil && found.ByPath {
		err = b.alone()
	}
	if err != nil {
		return unusable("rules", err, "remove the cause of this error, or use a directory on another filesystem (-d)")
	}
	text := "a rename replaces empty directories only, as locks require"
	if !found.Replaces {
		text = "a rename replaces nothing, not even an empty directory: safe, at one more request for each lock"
	}
	if found.Grain > 0 {
		text += fmt.Sprintf("; file times have a resolution of %s, so locks need --ttl %s or more", found.Grain, 10*found.Grain)
	}
	if found.ByPath {
		return source.Warning("rules", text+"; open files are found by their path, so locks are safe for one mount on one host only",
			"to share locks between hosts, use another filesystem: see multilock help filesystems")
	}
	return source.Fine("rules", text)
}

func unusable(subject string, err error, advice string) source.Finding {
	return source.Unusable(subject, strings.TrimPrefix(err.Error(), "fslock: "), advice)
}

// clockAmiss is how far a clock may be off before that is worth a warning.
const clockAmiss = time.Minute

func (b *Base) examineClock() source.Finding {
	before := time.Now() //nolint:forbidigo // a wall clock against another
	read, err := b.ReadClock()
	took := time.Since(before) //nolint:forbidigo // likewise
	if err != nil {
		return unusable("clock", err, "")
	}
	ahead, side := read.Sub(before.Add(took/2)).Round(time.Millisecond), "ahead of"
	if ahead < 0 {
		ahead, side = -ahead, "behind"
	}
	text := "the filesystem's clock is %s %s this host's"
	if ahead > clockAmiss {
		return source.Warning("clock", fmt.Sprintf(text, ahead.Round(time.Second), side), "set the wrong clock (NTP): locks do not depend on it, but cron and the history do")
	}
	return source.Fine("clock", fmt.Sprintf(text, ahead, side))
}
