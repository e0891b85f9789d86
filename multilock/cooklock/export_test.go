package cooklock

import "time"

// SwapTTL is the TTL of the locks under which a source on a ledger swaps.
func SwapTTL(s *Source) time.Duration {
	r, _ := s.open("nightly")
	return r.(LedgerRegister).TTL
}
