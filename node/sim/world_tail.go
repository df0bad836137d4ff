package sim

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// tail keeps the last lines of a log and hands all of them on to the trace.
type tail struct {
	logger zerolog.Logger // that writes here
	to     *Trace
	name   string

	mu    sync.Mutex
	lines []string
}

// tailLines is how many are kept.
const tailLines = 25

// Write takes one line.
func (t *tail) Write(p []byte) (int, error) {
	line := string(bytes.TrimSpace(p))
	t.to.Note("%s %s", t.name, line)
	if strings.HasPrefix(line, `{"level":"debug"`) {
		return len(p), nil // in the trace it is at hand, here it would hide the rest
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf("%.3f %s", time.Since(t.to.start).Seconds(), line))
	t.lines = t.lines[max(0, len(t.lines)-tailLines):]
	return len(p), nil
}

// String returns the lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return "  " + strings.Join(t.lines, "\n  ") + "\n"
}
