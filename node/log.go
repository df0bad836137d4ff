package node

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// NewLogger returns a logger that writes to w. Level is one of debug, info, warn, error and off; format is console
// (for eyes; in colour when w is a terminal) or json (one object a line, for collectors).
func NewLogger(w io.Writer, level, format string) (zerolog.Logger, error) {
	l, err := parseLevel(level)
	if err != nil {
		return zerolog.Nop(), err
	}
	switch format {
	case "json":
	case "console":
		w = zerolog.ConsoleWriter{Out: w, NoColor: !isTerminal(w), TimeFormat: time.DateTime}
	default:
		return zerolog.Nop(), fmt.Errorf("log format %q: want console or json", format)
	}
	return zerolog.New(zerolog.SyncWriter(w)).Level(l).With().Timestamp().Logger(), nil
}

// parseLevel reads a level by the few names that the configuration documents.
func parseLevel(s string) (zerolog.Level, error) {
	switch s {
	case "debug", "info", "warn", "error":
		return zerolog.ParseLevel(s)
	case "off":
		return zerolog.Disabled, nil
	}
	return zerolog.NoLevel, fmt.Errorf("log level %q: want debug, info, warn, error or off", s)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
