package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/node/api"
	"golang.org/x/term"
)

// How often it is told what a wait waits for: on a terminal, and in a log.
const (
	progressEvery = 300 * time.Millisecond
	logEvery      = time.Minute
)

// teller tells again and again what a node does for whoever waits for a version.
type teller struct {
	wanted string // what is waited for
	ask    func(context.Context) (api.Status, error)
	out    io.Writer
	screen bool // lines overwrite each other
	every  time.Duration
}

// newTeller returns one that tells on standard error: in one line that changes on a terminal, else in one a minute, so
// that a log does not stay silent.
func newTeller(wanted string, ask func(context.Context) (api.Status, error)) teller {
	t := teller{wanted: wanted, ask: ask, out: os.Stderr, every: logEvery}
	if term.IsTerminal(int(os.Stderr.Fd())) {
		t.screen, t.every = true, progressEvery
	}
	return t
}

// start begins to tell, until ctx ends or the function that it returns is called.
func (t teller) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { t.run(ctx) })
	return func() { cancel(); telling.Wait() }
}

func (t teller) run(ctx context.Context) {
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			t.clear()
			return
		case <-tick.C:
		}
		line := "waiting for " + t.wanted + ": the node is not up"
		s, err := t.ask(ctx)
		switch {
		case err == nil:
			line = progressLine(t.wanted, s)
		case !api.IsAbsent(err):
			continue // the call that waits will tell
		}
		if t.screen {
			fmt.Fprint(t.out, "\r\x1b[K"+fitting(line))
		} else {
			fmt.Fprintln(t.out, line)
		}
	}
}

func (t teller) clear() {
	if t.screen {
		fmt.Fprint(t.out, "\r\x1b[K")
	}
}

// progressLine says in one line what a node does for whoever waits for a version, or why nothing comes.
func progressLine(wanted string, s api.Status) string {
	served, newest := "nothing served", "no version known"
	if s.Served != nil {
		served = fmt.Sprintf("%d served", s.Served.Number)
	}
	if s.Latest != nil {
		newest = fmt.Sprintf("%d newest known", s.Latest.Number)
	}
	parts := []string{served, newest}
	switch p := s.Progress; {
	case p != nil:
		parts = append(parts, fmt.Sprintf("%s %d: %d of %d chunks, %s", s.State, p.Version.Number, p.ChunksDone, p.ChunksTotal, humanize.Bytes(p.Bytes)))
	case s.State == api.StateStarting, s.State == api.StateFetching, s.State == api.StateApplying:
		parts = append(parts, s.State)
	}
	line := "waiting for " + wanted + ": " + strings.Join(parts, ", ")
	if why := cmp.Or(s.Error, s.Waiting); why != "" {
		line += "; " + why
	}
	return line
}

// fitting cuts a line off where the terminal ends, so that it can be overwritten.
func fitting(line string) string {
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	if r := []rune(line); err == nil && len(r) >= width && width > 0 {
		return string(r[:width-1])
	}
	return line
}
