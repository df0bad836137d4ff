package mesh

import (
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEveryCounterIsNamedAndExplained gives each field a value of its own and looks for all of them.
func TestEveryCounterIsNamedAndExplained(t *testing.T) {
	s := new(Stats)
	fields := reflect.ValueOf(s).Elem()
	want := make(map[uint64]string)
	for i := range fields.NumField() {
		fields.Field(i).Addr().Interface().(*atomic.Uint64).Store(uint64(i) + 1)
		want[uint64(i)+1] = strings.ToLower(fields.Type().Field(i).Name)
	}
	snapshot, help := s.Snapshot(), StatsHelp()
	if len(snapshot) != len(want) || len(help) != len(want) {
		t.Errorf("%d names and %d explanations for %d counters", len(snapshot), len(help), len(want))
	}
	for name, value := range snapshot {
		if got := strings.ReplaceAll(name, "_", ""); got != want[value] {
			t.Errorf("%s holds the value of %s", name, want[value])
		}
		if line := help[name]; !strings.HasSuffix(line, ".") || strings.Contains(line, "\n") {
			t.Errorf("%s is explained as %q", name, line)
		}
	}
}
