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
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

type statusCmd struct {
	connectFlags
	jsonFlag
}

// Help is shown by sparsecast status --help.
func (statusCmd) Help() string {
	return `States: starting (reading what is on disk), waiting (no version known, or not the pinned one), fetching, applying, ready, error.
What keeps a rollout from serving the newest version, as a pin, max_lag or a confirm that is missing, stands under
waiting; how many steps it is behind, and since when it could be further, under behind.
Latest is the newest version heard of, served the one under path, store the blocks of code on this host's disk. On offer
are edges, each a way from one state to another: delta (from the version before), reverse (back again), base (from the base
checkpoint over many versions), anchor (a full copy).
Counters that should stay zero: chunks_tampered, heads_forged, heads_conflicting, messages_malformed.
The same numbers are served in Prometheus form under /metrics of the node's API.
Of a node that takes part in several runs it shows what concerns them all and a few lines a run; --run NAME tells all about one.

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
	if c.Of == "" {
		list, err := client.Runs(ctx)
		if err != nil {
			return err
		}
		if len(list.Runs) > 1 {
			return c.show(list, func() { printRuns(list) })
		}
	}
	s, err := client.Status(ctx)
	if err != nil {
		return err
	}
	return c.show(s, func() { printStatus(s) })
}

// rowFunc prints a line under its name.
type rowFunc func(name, format string, args ...any)

// rows returns a function that prints lines whose texts stand below each other once flush is called.
func rows() (row rowFunc, flush func()) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	return func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }, func() { w.Flush() }
}

// printRuns prints a few lines about the node and each of its runs.
func printRuns(list api.RunList) {
	row, flush := rows()
	defer flush()
	row("node", "%s, %s of %d runs, cluster %s", list.ID, list.Role, len(list.Runs), list.Cluster)
	printProblems(row, list.Problems)
	for _, r := range list.Runs {
		row("run", "%s: %s", r.Run, strings.TrimSpace(r.State+" "+r.Error))
		if r.Waiting != "" {
			row("waiting", "%s", r.Waiting)
		}
		printBehind(row, r.Behind, r.BehindSeconds)
		printProblems(row, r.Problems)
		printVersions(row, r.Latest, r.Served, r.Path)
	}
}

func printStatus(s api.Status) {
	row, flush := rows()
	defer flush()
	row("node", "%s, %s of run %s, cluster %s", s.ID, s.Role, s.Run, s.Cluster)
	row("state", "%s", strings.TrimSpace(s.State+" "+s.Error))
	printFollowing(row, s)
	printProblems(row, s.Problems)
	printVersions(row, s.Latest, s.Served, s.Path)
	if p := s.Progress; p != nil {
		row("fetching", "%d: %d of %d chunks, %s", p.Version.Number, p.ChunksDone, p.ChunksTotal, humanize.Bytes(p.Bytes))
	}
	printOffer(row, s)
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

func printProblems(row rowFunc, problems []string) {
	for _, p := range problems {
		row("problem", "%s", p)
	}
}

func printVersions(row rowFunc, latest, served *api.VersionInfo, path string) {
	if latest != nil {
		row("latest", "%s", versionText(*latest))
	}
	if served != nil {
		row("served", "%s", versionText(*served))
	}
	if path != "" { // a relay has none
		row("path", "%s", path)
	}
}

// printBehind tells how far what is served is behind the newest version, and for how long it has been.
func printBehind(row rowFunc, numbers *uint64, seconds float64) {
	if seconds <= 0 {
		return
	}
	behind := "an epoch"
	if numbers != nil {
		behind = fmt.Sprint(*numbers)
	}
	row("behind", "%s, for %s", behind, time.Duration(seconds*float64(time.Second)).Round(time.Second))
}

// printFollowing tells what keeps the node from serving the newest version, and how far it is behind.
func printFollowing(row rowFunc, s api.Status) {
	if s.Waiting != "" {
		row("waiting", "%s", s.Waiting)
	}
	if s.Pin != nil {
		row("pin", "pinned to %d since %s, until sparsecast unpin", s.Pin.Number, time.UnixMilli(s.Pin.Since).UTC().Format(time.DateTime))
	}
	if s.Unconfirmed != nil {
		row("unconfirmed", "%d, until sparsecast confirm %[1]d", s.Unconfirmed.Number)
	}
	printBehind(row, s.Behind, s.BehindSeconds)
}

// printOffer tells what of the run lies on this host's disk, and what is on offer.
func printOffer(row rowFunc, s api.Status) {
	row("store", "%d blocks, %s", s.Store.Blocks, humanize.Bytes(s.Store.Bytes))
	for _, kind := range slices.Sorted(maps.Keys(s.Offer)) {
		if o := s.Offer[kind]; o.Edges > 0 {
			row("on offer", "%d %s, %s", o.Edges, kind, humanize.Bytes(o.Bytes))
		}
	}
}

func versionText(v api.VersionInfo) string {
	return fmt.Sprintf("%s, root %s", mesh.Version(v.ID()), v.Root.Short())
}
