package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sparsecast/sparsecast/node/api"
)

func TestProgressLine(t *testing.T) {
	served, latest := &api.VersionInfo{Number: 12}, &api.VersionInfo{Number: 13}
	for _, c := range []struct {
		status api.Status
		want   string
	}{
		{api.Status{State: api.StateStarting}, "nothing served, no version known, starting"},
		{api.Status{State: api.StateWaiting}, "nothing served, no version known"},
		{api.Status{State: api.StateReady, Served: latest, Latest: latest}, "13 served, 13 newest known"},
		{api.Status{State: api.StateReady, Served: served, Latest: latest, Waiting: "pinned to 12"}, "12 served, 13 newest known; pinned to 12"},
		{api.Status{State: api.StateError, Served: served, Latest: latest, Error: "no path", Waiting: "x"}, "12 served, 13 newest known; no path"},
		{api.Status{State: api.StateApplying, Served: served, Latest: latest}, "12 served, 13 newest known, applying"},
		{
			api.Status{
				State: api.StateFetching, Served: served, Latest: latest,
				Progress: &api.Progress{Version: *latest, ChunksDone: 3, ChunksTotal: 7, Bytes: 96_000},
			},
			"12 served, 13 newest known, fetching 13: 3 of 7 chunks, 96 kB",
		},
	} {
		if got := progressLine("99", c.status); got != "waiting for 99: "+c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// In a log a wait says once a minute what it waits for, whatever answers; a short one says nothing.
func TestWaitIsToldInALog(t *testing.T) {
	const line = "waiting for 99: 13 served, 13 newest known\n"
	v := &api.VersionInfo{Number: 13}
	up := func(context.Context) (api.Status, error) {
		return api.Status{State: api.StateReady, Served: v, Latest: v}, nil
	}
	absent := func(context.Context) (api.Status, error) {
		return api.Status{}, api.NewError(0, fs.ErrNotExist, "start it")
	}
	strange := func(context.Context) (api.Status, error) { return api.Status{}, errors.New("no such run") }
	for what, c := range map[string]struct {
		ask   func(context.Context) (api.Status, error)
		waits time.Duration
		want  string
	}{
		"a short wait":     {up, 59 * time.Second, ""},
		"a long wait":      {up, 3*time.Minute + time.Second, strings.Repeat(line, 3)},
		"no node":          {absent, 61 * time.Second, "waiting for 99: the node is not up\n"},
		"no answer to ask": {strange, time.Hour, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			stop := teller{wanted: "99", ask: c.ask, out: &out, every: logEvery}.start(t.Context())
			time.Sleep(c.waits) // of virtual time
			stop()
			if out.String() != c.want {
				t.Errorf("%s: told %q, want %q", what, out.String(), c.want)
			}
		})
	}
}
