package demo

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// line is the last line of a terminal, drawn over in place. On anything else it shows nothing.
type line struct {
	mu    sync.Mutex
	live  bool
	drawn time.Time
	text  string
}

func newLine() *line { return &line{live: term.IsTerminal(int(os.Stdout.Fd()))} }

// set draws the line anew, at most ten times a second.
func (l *line) set(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.live || time.Since(l.drawn) < 100*time.Millisecond {
		return
	}
	l.text, l.drawn = fmt.Sprintf(format, args...), time.Now()
	fmt.Print("\r\x1b[K" + l.text)
}

// clear makes room for ordinary output.
func (l *line) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live && l.text != "" {
		fmt.Print("\r\x1b[K")
		l.text = ""
	}
}
