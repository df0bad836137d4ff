package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary be sparsecast too: a copy of it lies under that name in PATH. So scripts, fleets and
// the demo's own children run the code under test, with its race detector and its coverage.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sparsecast": main, "stubborn": stubborn})
}
