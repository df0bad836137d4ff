package bench

import (
	"fmt"
	"os"

	"golang.org/x/term"
)

// progress tells on standard error what is being measured: in one line that changes on a terminal, else in a line each.
type progress struct {
	screen bool
	quiet  bool
}

func newProgress() progress { return progress{screen: term.IsTerminal(int(os.Stderr.Fd()))} }

func (p progress) say(format string, args ...any) {
	switch text := fmt.Sprintf(format, args...); {
	case p.quiet:
	case p.screen:
		fmt.Fprint(os.Stderr, "\r\x1b[K"+text)
	default:
		fmt.Fprintln(os.Stderr, text)
	}
}

// often is for what is said again and again, of which a log needs nothing.
func (p progress) often(format string, args ...any) {
	if p.screen {
		p.say(format, args...)
	}
}

// clear makes room for ordinary output.
func (p progress) clear() {
	if p.screen {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
