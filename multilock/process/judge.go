package process

import "fmt"

// Judge reports whether the process is alive, as seen by self, which must be the identity of the calling
// process.
//
// The number of a process only proves something where it was assigned: if boot and namespace of both are
// known and equal, and neither host name nor machine id is known to differ. Everywhere else, and for a PID
// that is not positive, the answer is Unknown. A process that has the number but whose start time cannot be
// compared counts as Alive, and so does one that belongs to another user, is stopped, or has lost its main
// thread. A zombie counts as Gone.
//
// Containers restored from a checkpoint and virtual machines resumed from one snapshot on several hosts
// keep the boot id. Restored containers change the start time; resumed machines are duplicates, which can
// only be distinguished if they were given different names or machine ids. For that reason a container with
// a name of its own proves nothing to its host either, even if the two share boot and pid namespace.
func (id Identity) Judge(self Identity) Evidence {
	if id.PID <= 0 {
		return evidence(Unknown, "%d is not the number of a process", id.PID)
	}
	if why := elsewhere(id, self); why != "" {
		return evidence(Unknown, "%s", why)
	}
	return judgePID(id.PID, id.Start)
}

// SameMachineOtherBoot reports that the record was made under another boot of the machine that self runs
// on: same host name, same machine, and two boots that are both known and differ. The machine may have been
// rebooted since, or one of the two is a clone of the other, and both are running: this proves neither life
// nor death.
func (id Identity) SameMachineOtherBoot(self Identity) bool {
	return id.Machine != "" && id.Machine == self.Machine &&
		id.Host == self.Host && otherBoot(id.Boot, self.Boot)
}

// Elsewhere reports that process numbers recorded by id mean nothing to self.
func (id Identity) Elsewhere(self Identity) bool { return elsewhere(id, self) != "" }

// elsewhere returns why a number recorded by id means nothing to self, or "" if it does mean something.
func elsewhere(id, self Identity) string {
	switch {
	case differ(id.Host, self.Host):
		return fmt.Sprintf("runs on another host (%s)", printable(id.Host))
	case differ(id.Machine, self.Machine):
		return "runs on another machine that has this host's name"
	case id.Boot == "" || self.Boot == "":
		return "the boot it runs under is not known"
	case !sameBoot(id.Boot, self.Boot):
		return "was started under another boot or on another host"
	case id.Namespace == "" || self.Namespace == "":
		return "its pid namespace is not known"
	case id.Namespace != self.Namespace:
		return "runs in another pid namespace"
	}
	return ""
}

// differ reports that two values are known and different.
func differ(a, b string) bool { return a != "" && b != "" && a != b }
