package node

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestLoggerFormats(t *testing.T) {
	var b bytes.Buffer
	log, err := NewLogger(&b, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	log.Debug().Msg("hidden")
	log.Info().Str("run", "r").Msg("shown")
	var line map[string]string
	if err := json.Unmarshal(b.Bytes(), &line); err != nil || line["message"] != "shown" || line["run"] != "r" || line["time"] == "" {
		t.Errorf("json: got %q, %v", b.String(), err)
	}
	b.Reset()
	if log, err = NewLogger(&b, "warn", "console"); err != nil {
		t.Fatal(err)
	}
	log.Info().Msg("hidden")
	log.Warn().Str("run", "r").Msg("shown")
	if s := b.String(); strings.Contains(s, "hidden") || !strings.Contains(s, "shown run=r") || strings.Contains(s, "\x1b") {
		t.Errorf("console: got %q, want one line without colours", s)
	}
	b.Reset()
	if log, err = NewLogger(&b, "off", "json"); err != nil {
		t.Fatal(err)
	}
	log.Error().Msg("hidden")
	if b.Len() != 0 {
		t.Errorf("off: got %q", b.String())
	}
}

func TestLoggerRefuses(t *testing.T) {
	for _, c := range [][2]string{{"loud", "json"}, {"", "json"}, {"trace", "json"}, {"info", "xml"}, {"info", ""}} {
		if _, err := NewLogger(&bytes.Buffer{}, c[0], c[1]); err == nil || !strings.Contains(err.Error(), "want") {
			t.Errorf("%v: got %v, want an error that lists the choices", c, err)
		}
	}
}
