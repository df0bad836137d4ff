package node

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers in testdata anew")

// scenarios reads each file of a kind in testdata and demands that tell, given its text, returns the same. With -update
// what tell returns is written instead.
func scenarios(t *testing.T, kind string, tell func(t *testing.T, text string) string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", kind, "*.txt"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			switch got := tell(t, string(b)); {
			case *update:
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			case got != string(b):
				t.Errorf("got\n%swant\n%s", got, b)
			}
		})
	}
}

// answered is a scenario whose answer stands below a line with one word.
func answered(word string, answer func(t *testing.T, question string) string) func(t *testing.T, text string) string {
	return func(t *testing.T, text string) string {
		question, _, _ := strings.Cut(text, word+"\n")
		return question + word + "\n" + answer(t, question)
	}
}
