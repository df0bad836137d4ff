package needs

import (
	"os"
	"testing"
)

// Met ends a test when err says that the machine lacks what the test needs, such as "to run as root, for a mount".
func Met(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case inCI():
		t.Fatalf("needs %s, which CI must offer, or this stays untested: %v", what, err)
	default:
		t.Skipf("needs %s: %v", what, err)
	}
}

func inCI() bool {
	ci := os.Getenv("CI")
	return ci != "" && ci != "false" && ci != "0"
}
