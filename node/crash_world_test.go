package node

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// A crash is tried before every single change of the disk that a scenario makes. Each try is a whole node on a disk in
// memory, alone in virtual time: what a rollout would fetch is put into its store, and what it would hear is told to
// its mesh, signed by the trainer.

// crash is how and when a machine ends: before its nth change of the disk, from 1 on; 0 is never.
type crash struct {
	nth   int
	power bool   // what was not synced may be lost, as seed decides
	torn  bool   // if the change is a write, half of it is made
	seed  uint64 // of a loss of power
}

func (c crash) String() string {
	how := "killed"
	if c.power {
		how = fmt.Sprintf("power lost (%d)", c.seed)
	}
	if c.torn {
		how += ", torn"
	}
	return fmt.Sprintf("%s before change %d", how, c.nth)
}

// victim is one machine: what outlives its node.
type victim struct {
	cfg  *Config
	disk *faults.Disk
	log  *lastLines
}

// alone opens a host that nobody can reach.
func alone(cfg mesh.HostConfig, stats *mesh.Stats) (host.Host, error) {
	cfg.Listen = nil
	return mesh.NewHost(cfg, stats)
}

var errCrashed = errors.New("the machine has crashed")

// live runs a node while scenario does something with it, or until c comes. It returns how often the disk was changed
// and whether c came.
func (v *victim) live(t *testing.T, c crash, scenario func(ctx context.Context, n *part) error) (changes int, crashed bool) {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	mount := v.disk.Mount()
	defer mount.Kill()
	var mu sync.Mutex // guards the counts: a node has many goroutines
	torn := false
	strike := func() error {
		crashed = true
		end(errCrashed)
		if c.power {
			v.disk.PowerLoss(rand.New(rand.NewPCG(c.seed, uint64(c.nth))))
		} else {
			mount.Kill()
		}
		return faults.ErrKilled
	}
	var fsys files.FS = mount
	if c.torn {
		fsys = &faults.Failing{On: mount, Short: true, Nth: 1, When: func(op faults.Op) bool {
			mu.Lock()
			defer mu.Unlock()
			return op.Call == "write" && changes+1 == c.nth
		}}
	}
	mount.OnCall = func(op faults.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if crashed || torn {
			return strike()
		}
		if !op.Writes {
			return nil
		}
		changes++
		if changes != c.nth {
			return nil
		}
		if c.torn && op.Call == "write" { // this much of it was made
			torn = true
			return nil
		}
		return strike()
	}
	n, err := NewOn(Machine{FS: fsys, NewHost: alone, NoAPI: true}, v.cfg, v.log.logger())
	if err == nil {
		err = v.run(ctx, n, scenario)
	}
	mu.Lock()
	defer mu.Unlock()
	if torn && !crashed {
		_ = strike()
	}
	if err != nil && !crashed {
		t.Fatalf("%v\n%s", err, v.log)
	}
	return changes, crashed
}

func (v *victim) run(ctx context.Context, n *Node, scenario func(ctx context.Context, n *part) error) error {
	ctx, cancel := context.WithTimeout(ctx, 24*time.Hour) // of virtual time
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- n.Run(ctx)
	}()
	err := scenario(ctx, n.parts[0])
	cancel()
	err = errors.Join(err, <-done)
	_ = n.Close() // the host always closes, and a disk that is gone has said so before
	return err
}

// lastLines keeps the end of a log.
type lastLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *lastLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.TrimSpace(string(b)))
	l.lines = l.lines[max(0, len(l.lines)-40):]
	return len(b), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

func (l *lastLines) logger() zerolog.Logger { return zerolog.New(l).Level(zerolog.InfoLevel) }

// shown returns the version that an engine would load from a machine right now; -1 when there is none, and an error
// when it would load what is no version.
func (v *victim) shown(c *cast) (int, error) {
	m := v.disk.Mount()
	defer m.Kill()
	root, err := rootOn(m, "/data/current")
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	if err == nil && c.version(root) < 0 {
		err = fmt.Errorf("current leads to a state %s that is none of the run", root.Short())
	}
	return c.version(root), err
}

// leftovers returns the files of writes that never ended.
func (v *victim) leftovers() (left []string) {
	for _, f := range v.disk.Files() {
		if name := path.Base(f); strings.HasPrefix(name, ".tmp-") || strings.HasSuffix(name, ".partial") {
			left = append(left, f)
		}
	}
	return left
}

var everyWay = flag.Bool("every-crash", false, "try every way of a crash at every moment, which takes minutes")

// everyCrash plays f in virtual time for each way and moment of a crash. Play returns how many changes the first life
// made, which is how many moments there are.
func everyCrash(t *testing.T, play func(t *testing.T, c crash) (changes int)) {
	t.Helper()
	total := 0
	synctest.Test(t, func(t *testing.T) { total = play(t, crash{}) })
	if total < 20 {
		t.Fatalf("only %d changes of the disk: is this the whole scenario?", total)
	}
	ways := []crash{{}, {torn: true}, {power: true, seed: 1}, {power: true, seed: 2}, {power: true, seed: 3}, {power: true, torn: true, seed: 4}}
	step := 5 // coprime to the ways: each comes at one moment or the next, and every moment has one
	switch {
	case *everyWay:
		step = 1
	case testing.Short() || underRace:
		step = 29
	}
	tries := 0
	for n := 1; n <= total+1; n++ {
		for i, c := range ways {
			if (n*len(ways)+i)%step != 0 {
				continue
			}
			c.nth = n
			tries++
			synctest.Test(t, func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Logf("crash: %s", c)
					}
				}()
				play(t, c)
			})
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d changes of the disk, %d crashes", total, tries)
}

// follow brings a node from version to version, and returns the last one that it came to.
func follow(ctx context.Context, c *cast, v *victim, n *part, news []broadcast) (last int, err error) {
	for i, b := range news {
		if err := b.hear(ctx, n, c.publisher); err != nil {
			return last, err
		}
		if err := arrive(ctx, c, v, n, i); err != nil {
			return last, err
		}
		last = i
	}
	return last, nil
}

// arrive waits until a version is served, and looks at what an engine would load.
func arrive(ctx context.Context, c *cast, v *victim, n *part, number int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour) // of virtual time
	defer cancel()
	err := n.board.waitFor(ctx, func(b *board) bool { return b.served != nil && b.served.Root == c.roots[number] })
	if err != nil {
		return fmt.Errorf("version %d is not served: %w; status %+v", number, err, n.Status(ctx))
	}
	if got, err := v.shown(c); err != nil || got != number {
		return fmt.Errorf("version %d is served, an engine loads %d, %w", number, got, err)
	}
	return nil
}

func pinTo(ctx context.Context, n *part, number uint64) error {
	_, err := n.Pin(ctx, api.VersionRequest{Number: &number})
	return err
}

// pinnedNumber returns -1 when a node is not pinned.
func (n *part) pinnedNumber() (number int) {
	n.board.look(func(b *board) {
		number = -1
		if b.pin != nil {
			number = int(b.pin.Number)
		}
	})
	return number
}

// tidied demands that a rollout keeps the blocks that it may need or pass on, and no others. Where it acted on the newest head
// before it had the catalogue beside it, what that took from the offer stays until the next head.
func tidied(r *rollout, newest broadcast) error {
	leaving := make(map[cid.Cid]bool)
	r.shelf.mu.Lock()
	left := slices.Clone(r.shelf.runs[r.runName].leaving)
	r.shelf.mu.Unlock()
	for _, e := range left {
		if err := r.library.need(leaving, e.Manifest); err != nil {
			return err
		}
	}
	all, err := r.library.store.List()
	if err != nil {
		return err
	}
	for _, id := range all {
		if _, ok := newest.blocks[id]; !ok && !leaving[id] {
			return fmt.Errorf("block %s is kept for nothing", id)
		}
	}
	return nil
}
