package node

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSuggest(t *testing.T) {
	for field, want := range map[string]string{
		"rle": "role", "Role": "role", "peer": "peers", "publisher": "publishers", "trusted-nets": "trusted_nets", "formatt": "format",
	} {
		if got := suggest(field); got != `did you mean "`+want+`"?` {
			t.Errorf("%s: got %s, want %s", field, got, want)
		}
	}
}

func TestSuggestKnowsNoBetter(t *testing.T) {
	if got, want := suggest("temperature"), "sparsecast node --example"; !strings.Contains(got, want) {
		t.Errorf("got %s, want the place to look, %s", got, want)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"abc", "abc", 0}, {"kitten", "sitting", 3}, {"role", "roel", 2}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
	words := rapid.StringMatching(`[ab]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := words.Draw(t, "a"), words.Draw(t, "b"), words.Draw(t, "c")
		if d := editDistance(a, b); d != editDistance(b, a) || (d == 0) != (a == b) || d > editDistance(a, c)+editDistance(c, b) {
			t.Errorf("%q, %q, %q: no metric", a, b, c)
		}
	})
}
