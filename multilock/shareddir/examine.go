package shareddir

import (
	"fmt"
	"time"

	"github.com/multilock/go/multilock/source"
)

// Examine looks at the mount, tries out the filesystem's rules, compares the clocks, and
// looks whose the files are in .multilock and in the group. It writes in .multilock alone.
func (b *Base) Examine(group string) []source.Finding {
	found := append(b.examineMount(), b.examineRules(), b.examineClock())
	found = append(found, b.examineName()...)
	return append(found, b.examineTrust([]string{PrivateDir, group})...)
}

func (b *Base) examineMount() []source.Finding {
	m, err := mountOf(b.Dir)
	if err != nil {
		return []source.Finding{{Subject: "mount", Severity: source.SeverityFine, Text: fmt.Sprintf("filesystem type %s; %v", b.Kind.Type, err)}}
	}
	found := m.findings()
	if b.OneHost() != "" {
		found = append(found, source.Finding{
			Subject: "mount", Severity: source.SeverityWarning, Text: fmt.Sprintf("no other host sees this filesystem (%s): locks on it keep nobody out there", m.kind),
			Advice: "if hosts are to share the locks, see whether the shared filesystem is mounted, and give a directory on it with -d",
		})
	}
	return found
}

// examineRules makes the filesystem's test, whatever an earlier one found.
func (b *Base) examineRules() source.Finding {
	f := source.Finding{Subject: "rules", Severity: source.SeverityFine}
	found, err := b.testRepeatedly()
	if err == nil && found.ByPath {
		err = b.alone()
	}
	switch {
	case err != nil:
		f.Severity, f.Text = source.SeverityUnusable, err.Error()
		f.Advice = "nobody can take a lock here as it is; if the message does not say what to do, choose a directory on another filesystem with -d"
	case found.Replaces:
		f.Text = "directories and files that are there are not replaced, an empty directory is: all that locks need"
	default:
		f.Text = "directories and files that are there are not replaced, not even an empty directory: safe, with one more request to take a lock"
	}
	if found.ByPath {
		f.Severity = source.SeverityWarning
		f.Text += "; what is open is found by its path, so it is safe for one mount on one host only"
		f.Advice = "where several hosts are to share locks, use another filesystem: see multilock help filesystems"
	}
	if found.Grain > 0 {
		f.Text += fmt.Sprintf("; times have steps of %s, so the ttl of a lock has to be %s or more", found.Grain, 10*found.Grain)
	}
	return f
}

// clockAmiss is how far a clock may be off before that is worth a warning.
const clockAmiss = time.Minute

func (b *Base) examineClock() source.Finding {
	f := source.Finding{Subject: "clock", Severity: source.SeverityFine}
	before := time.Now() //nolint:forbidigo // a wall clock against another
	read, err := b.ReadClock()
	took := time.Since(before) //nolint:forbidigo // likewise
	if err != nil {
		f.Severity, f.Text = source.SeverityUnusable, err.Error()
		return f
	}
	ahead := read.Sub(before.Add(took / 2)).Round(time.Millisecond)
	if ahead.Abs() > clockAmiss {
		ahead = ahead.Round(time.Second) // nobody cares for more
	}
	f.Text = fmt.Sprintf("the filesystem's clock is %s ahead of this host's; it was read in %s", ahead, took.Round(10*time.Microsecond))
	if ahead < 0 {
		f.Text = fmt.Sprintf("the filesystem's clock is %s behind this host's; it was read in %s", -ahead, took.Round(10*time.Microsecond))
	}
	if ahead.Abs() > clockAmiss {
		f.Severity = source.SeverityWarning
		f.Advice = "set the clock that is wrong (NTP): no lock depends on it, but cron starts jobs by this host's, and the history is written by it"
	}
	return f
}
