package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/sparsecast/sparsecast/node/api"
)

type statusCmd struct {
	connectFlags
	jsonFlag
}

// Help is shown by sparsecast status --help.
func (statusCmd) Help() string {
	return `States: starting (reading what is on disk), waiting (no version known), fetching, applying, ready, error.
Counters that should stay zero: chunks_tampered, heads_forged, heads_conflicting, messages_malformed.
The same numbers are served in Prometheus form under /metrics of the node's API.

  sparsecast status --config sparsecast.yaml
  sparsecast status --api 127.0.0.1:7070 --token-file data/api.token --json`
}

// Run prints the node's status.
func (c statusCmd) Run(ctx context.Context) error {
	client, err := c.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := client.Status(ctx)
	if err != nil {
		return err
	}
	return c.show(s, func() { printStatus(s) })
}

func printStatus(s api.Status) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	defer w.Flush()
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("node", "%s, %s of run %s, cluster %s", s.ID, s.Role, s.Run, s.Cluster)
	row("state", "%s", strings.TrimSpace(s.State+" "+s.Error))
	for _, p := range s.Problems {
		row("problem", "%s", p)
	}
	if s.Latest != nil {
		row("latest", "%s", versionText(*s.Latest))
	}
	if s.Served != nil {
		row("served", "%s", versionText(*s.Served))
		row("path", "%s", s.Path)
	}
	if p := s.Progress; p != nil {
		row("fetching", "%d: %d of %d chunks, %s", p.Version.Number, p.ChunksDone, p.ChunksTotal, humanize.Bytes(p.Bytes))
	}
	for _, a := range s.Addrs {
		row("address", "%s", a)
	}
	for _, p := range s.Peers {
		row("peer", "%s %s %s, %.1f ms, sent %s, received %s", p.ID, p.Role, p.Addr, p.RTT, humanize.Bytes(p.Sent), humanize.Bytes(p.Received))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Counters)) {
		if v := s.Counters[name]; v != 0 {
			row(name, "%d", v)
		}
	}
}

func versionText(v api.VersionInfo) string {
	return fmt.Sprintf("%d of epoch %s, root %s", v.Number, time.UnixMilli(int64(v.Epoch)).UTC().Format(time.DateTime), v.Root.Short())
}
