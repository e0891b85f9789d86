package guides_test

import (
	"testing"
	"time"
)

func TestHold(t *testing.T) { time.Sleep(2 * time.Hour) }
