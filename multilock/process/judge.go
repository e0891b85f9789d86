package process

// Judge says whether the process lives, from the view of self, which must be
// the identity of the calling process.
//
// The number of a process proves something only where it was given: when boot
// and namespace of both are known and the same. Everywhere else, and for a PID
// that is not positive, the answer is Unknown. A process that has the number
// but whose start time cannot be compared counts as Alive, and so does one that
// belongs to another user, is stopped, or has lost its main thread. A zombie
// counts as Gone.
//
// Containers restored from a checkpoint and virtual machines resumed from one
// snapshot on several hosts keep the boot id; the first change the start time,
// the second live twice. Neither can be seen from here.
func (id Identity) Judge(self Identity) Evidence {
	if id.PID <= 0 {
		return evidence(Unknown, "%d is not the number of a process", id.PID)
	}
	if id.Host != self.Host && !sameBoot(id.Boot, self.Boot) {
		return evidence(Unknown, "runs on another host (%s)", printable(id.Host))
	}
	if why := elsewhere(id.Boot, id.Namespace, self); why != "" {
		return evidence(Unknown, "%s", why)
	}
	return judgePID(id.PID, id.Start)
}

// SameMachineOtherBoot reports that the record was made under another boot of
// the machine that self runs on: same host name, same machine, and two boots
// that are both known and differ. It may have been rebooted since, or one of the two
// is a clone of the other, and both are running: no life or death follows from it.
func (id Identity) SameMachineOtherBoot(self Identity) bool {
	return id.Machine != "" && id.Machine == self.Machine &&
		id.Host == self.Host && otherBoot(id.Boot, self.Boot)
}

// elsewhere returns why a pid recorded under boot and namespace means nothing
// to self, or "" if it does mean something.
func elsewhere(boot, namespace string, self Identity) string {
	switch {
	case boot == "" || self.Boot == "":
		return "the boot it runs under is not known"
	case !sameBoot(boot, self.Boot):
		return "was started under another boot or on another host"
	case namespace == "" || self.Namespace == "":
		return "its pid namespace is not known"
	case namespace != self.Namespace:
		return "runs in another pid namespace"
	}
	return ""
}
