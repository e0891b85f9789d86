package process

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// machineHashBytes is enough to tell the machines of a cluster apart: among ten
// thousand, the chance that two share a hash is about 3 in 10^12.
const machineHashBytes = 8

// hashMachineID derives an id for this program alone. machine-id(5) asks not to
// expose the id itself and to hash it with a key of the application's own;
// like sd_id128_get_machine_app_specific(3) this is an HMAC-SHA256 with the
// machine's id as the key.
func hashMachineID(raw string) string {
	if !isMachineID(raw) {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(raw))
	mac.Write([]byte("github.com/multilock/go process identity"))
	return hex.EncodeToString(mac.Sum(nil)[:machineHashBytes])
}

// isMachineID refuses what many machines have in common: nothing, zeros, and
// the word that stands in /etc/machine-id of an image until its first boot.
func isMachineID(raw string) bool {
	return raw != "uninitialized" && strings.Trim(raw, "0-") != ""
}
