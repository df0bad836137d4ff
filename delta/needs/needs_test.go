package needs

import (
	"errors"
	"fmt"
	"testing"
)

// end notes how a test was ended.
type end struct {
	testing.TB
	how string
}

func (e *end) Fatalf(format string, args ...any) { e.how = "failed: " + fmt.Sprintf(format, args...) }
func (e *end) Skipf(format string, args ...any)  { e.how = "skipped: " + fmt.Sprintf(format, args...) }

func TestMet(t *testing.T) {
	no := errors.New("not permitted")
	for _, c := range []struct {
		ci   string
		err  error
		want string
	}{
		{"", nil, ""},
		{"true", nil, ""},
		{"", no, "skipped: needs root: not permitted"},
		{"false", no, "skipped: needs root: not permitted"},
		{"0", no, "skipped: needs root: not permitted"},
		{"true", no, "failed: needs root, which CI must offer, or this stays untested: not permitted"},
		{"1", no, "failed: needs root, which CI must offer, or this stays untested: not permitted"},
	} {
		t.Setenv("CI", c.ci)
		e := &end{TB: t}
		if Met(e, "root", c.err); e.how != c.want {
			t.Errorf("CI=%q, %v: %q, want %q", c.ci, c.err, e.how, c.want)
		}
	}
}
