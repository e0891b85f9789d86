package cooklock_test

import (
	"os"
	"testing"

	"github.com/multilock/go/internal/testkit/actor"
)

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"swapper": play(part.swap), "chef": play(part.cook)})
	os.Exit(m.Run())
}
