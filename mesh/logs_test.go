package mesh

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// logLines keeps what is logged, for counting.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(b))
	return len(b), nil
}

func (l *logLines) logger() zerolog.Logger { return zerolog.New(l).Level(zerolog.InfoLevel) }

// count returns how many lines have all the words.
func (l *logLines) count(words ...string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := 0
	for _, line := range l.lines {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			found++
		}
	}
	return found
}

func (l *logLines) want(t *testing.T, n int, words ...string) {
	t.Helper()
	if got := l.count(words...); got != n {
		l.mu.Lock()
		defer l.mu.Unlock()
		t.Errorf("%d lines with %q, want %d, in:\n%s", got, words, n, strings.Join(l.lines, ""))
	}
}

func TestClosingAListenerIsNoError(t *testing.T) {
	lines := new(logLines)
	log := slog.New(bridge(lines.logger())).With("logger", "swarm").WithGroup("g")
	const accept = "swarm listener accept error"
	log.Error(accept, "addr", "/ip4/127.0.0.1/tcp/1", "err", errors.New("listener closed"))
	lines.want(t, 0)
	log.Error(accept, "addr", "/ip4/127.0.0.1/tcp/1", "err", errors.New("too many open files"))
	log.Error("another matter", "err", errors.New("listener closed"))
	lines.want(t, 2)
}
