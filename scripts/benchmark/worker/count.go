package worker

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

type counted struct {
	moment
	// Longest is the longest wait for the lock, in seconds.
	Longest float64 `json:"longest"`
}

// count increments the number in a file under the lock, "N FILE" being how often and where. The file tells whether the
// lock excluded: increments that overlap get lost.
func count(lock Lock, argument string) (counted, error) {
	number, file, _ := strings.Cut(argument, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return counted{}, err
	}
	var longest time.Duration
	for range n {
		start := time.Now()
		if err := lock.Acquire(); err != nil {
			return counted{}, err
		}
		longest = max(longest, time.Since(start))
		if err := increment(file); err != nil {
			return counted{}, err
		}
		if err := lock.Release(); err != nil {
			return counted{}, err
		}
	}
	return counted{moment: now(), Longest: longest.Seconds()}, nil
}

func increment(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("the counter %s: %w", file, err)
	}
	return os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o644)
}
