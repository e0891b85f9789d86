package fslock_test
func playWorker() error { return nil }
