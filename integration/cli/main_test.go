package cli_test

import (
	"os"
	"testing"

	"github.com/multilock/go/cmd/multilock/clitest"
)

func TestMain(m *testing.M) {
	os.Exit(clitest.Main(m, "../../cmd/multilock"))
}
