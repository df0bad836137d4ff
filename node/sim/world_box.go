package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// Where things lie on every machine.
const (
	keyFile       = "/etc/sparsecast/node.key"
	peersFile     = "/etc/sparsecast/peers.txt"
	bootstrapFile = "/etc/sparsecast/bootstrap.txt"
	dataDir       = "/var/lib/sparsecast"
	baseDir       = "/models/base"
	weightsFile   = "model.safetensors"
	steps         = "/checkpoints"
)

// restartAfter is how long a service manager waits before it starts a node again that ended by itself.
const restartAfter = 5 * time.Second

// soon is when a node has begun to serve after a start, where it has nothing to read.
const soon = 50 * time.Millisecond

// box is a machine: a disk, a key, an address, and one life of a node after the other.
type box struct {
	w       *World
	index   int
	plan    *BoxPlan
	key     crypto.PrivKey
	id      peer.ID
	disk    *faults.Disk
	chance  *rand.Rand // what is lost with the power
	tap     *tap
	clock   atomic.Int64 // how far the machine's clock is ahead
	log     *tail
	program *program // of a trainer

	life     *life       // the newest; nil while none was started
	lives    []*life     // all
	down     int         // reasons to stay down
	troubled atomic.Bool // faults of the disk were injected, so that a node may end by itself
	harmed   atomic.Bool // bits were flipped

	lastStand stand              // of a trainer
	ways      map[mesh.Edge]bool // kept for itself since the faults have ended
	loaded    engine             // of a rollout whose user confirms
	memory
}

// life is one process of a node.
type life struct {
	box    *box
	mount  *faults.Mount
	proc   *Process
	ctx    context.Context
	cancel context.CancelFunc
	node   atomic.Pointer[node.Node] // once it is built
	dead   atomic.Bool               // it was killed, and nothing it does counts
	asked  bool                      // to end
	gone   chan struct{}
	err    error // valid when gone
	told   bool  // its end was dealt with
}

func (b *box) name() string { return boxName(b.index) }
func (b *box) ip() string   { return fmt.Sprintf("10.0.%d.1", b.index) }
func (b *box) addr() string { return "/ip4/" + b.ip() + "/tcp/4001" }

func (b *box) trainer() bool { return b.plan.Role == mesh.RoleTrainer }

// basePath is what the configuration calls the base of a state, whether it is there or not.
func (b *box) basePath(state string) string {
	switch {
	case !b.plan.Base:
		return ""
	case b.plan.BaseFile:
		return path.Join(baseDir, state, weightsFile)
	}
	return path.Join(baseDir, state)
}

func (b *box) config() *node.Config {
	cfg := node.DefaultConfig()
	cfg.Role, cfg.Run, cfg.Cluster = b.plan.Role, "sim", b.plan.Cluster
	cfg.Data, cfg.Key, cfg.Peers, cfg.Bootstrap = dataDir, keyFile, peersFile, bootstrapFile
	cfg.Listen = []string{b.addr()}
	cfg.Keep, cfg.Reverse, cfg.Anchors, cfg.Poll = b.w.plan.Keep, b.w.plan.Back, b.w.plan.Full, b.w.plan.Poll
	cfg.KeepBytes, cfg.MaxLag = b.w.plan.Bytes, b.plan.Lag
	if b.plan.Manual {
		cfg.Confirm = "manual"
	}
	if b.plan.OneSlot {
		cfg.Slots = 1
	}
	if b.w.plan.Form.layers {
		cfg.GroupBy = "layer"
	}
	switch {
	case !b.plan.Base:
	case b.w.plan.Form.states:
		cfg.Bases = make(map[string]string)
		for _, state := range b.w.plan.Form.names() {
			cfg.Bases[state] = b.basePath(state)
		}
	default:
		cfg.Base = b.basePath("")
	}
	cfg.Publishers = b.w.publishers()
	return cfg
}

// now is the time by the machine's clock.
func (b *box) now() time.Time { return time.Now().Add(time.Duration(b.clock.Load())) }

// revive starts a node, unless one lives or there is a reason not to.
func (b *box) revive() {
	if b.down > 0 || b.w.over || b.life != nil && !b.life.told {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{
		box: b, mount: b.disk.Mount(), proc: b.w.net.Machine(b.ip()).Start(),
		ctx: ctx, cancel: cancel, gone: make(chan struct{}),
	}
	l.mount.OnCall = b.tap.on(l)
	b.life, b.lives = l, append(b.lives, l)
	b.w.note("%s starts", b.name())
	b.w.after(soon, func() {}) // everything is looked at after every event, and so is what a start serves
	go l.run()
}

func (l *life) run() {
	defer l.box.w.wake()
	defer close(l.gone)
	defer l.mount.Kill() // with the process go its locks
	n, err := node.NewOn(l.machine(), l.box.config(), l.box.log.logger)
	if err != nil {
		l.err = err
		return
	}
	l.node.Store(n)
	err = n.Run(l.ctx)
	l.node.Store(nil)
	if e := n.Close(); err == nil {
		err = e
	}
	l.err = err
}

func (l *life) machine() node.Machine {
	return node.Machine{FS: l.mount, NoAPI: true, Now: l.box.now, NewHost: func(c mesh.HostConfig, s *mesh.Stats) (host.Host, error) {
		c.Transport = l.proc.Transport()
		return mesh.NewHost(c, s)
	}}
}

// sever is the moment in which a process dies, by itself or with its machine. What of it still runs in this program has
// no effect any more. The dying may call it themselves.
func (l *life) sever(how manner) {
	if l.dead.Swap(true) {
		return
	}
	l.mount.Kill()
	if how == dark {
		l.box.darken()
	} else {
		l.proc.Kill()
	}
	l.cancel()
}

// darken takes the power away.
func (b *box) darken() {
	b.unsure.Store(true)
	b.shake()
	b.w.net.Machine(b.ip()).PowerOff()
	b.disk.PowerLoss(b.chance)
}

// alive returns the run of the node that lives, or nil.
func (b *box) alive() api.Run {
	if b.life == nil || b.life.dead.Load() || b.life.asked {
		return nil
	}
	n := b.life.node.Load()
	if n == nil {
		return nil
	}
	r, err := n.In("")
	if err != nil {
		return nil // it has but one
	}
	return r
}

// quit asks the node to end.
func (b *box) quit() {
	if b.life == nil || b.life.told {
		return
	}
	b.life.asked = true
	b.life.cancel()
}

// fell kills the process or takes the machine's power, and starts the node again later.
func (b *box) fell(d *stop) {
	switch {
	case b.life != nil && !b.life.told:
		b.life.sever(d.How)
		b.life.told = true
	case d.How == dark:
		b.darken()
	}
	if d.How == dark {
		b.program.reboot()
		b.loaded = engine{} // gone with the rest that runs there
	}
	b.lookAtRemains()
	b.later(d)
}

// later starts the node again after a while.
func (b *box) later(d *stop) {
	b.down++
	b.w.after(d.Back, func() {
		b.down--
		if d.How == dark {
			b.w.net.Machine(b.ip()).PowerOn()
		}
		if d.Wipe && b.down == 0 && (b.life == nil || b.life.told) {
			b.wipe()
		}
		b.revive()
	})
}

// reap deals with the end of a node that nobody else has dealt with. By itself it ends only for a fault of its disk.
func (b *box) reap() {
	if d := b.tap.fired(); d != nil {
		b.w.note("%s %s at a file call", b.name(), d.How)
		b.fell(d)
		return
	}
	l := b.life
	if l == nil || l.told {
		return
	}
	select {
	case <-l.gone:
	default:
		return
	}
	l.told = true
	b.w.note("%s ended: %v", b.name(), l.err)
	if b.troubled.Load() {
		b.w.after(restartAfter, b.revive)
		return
	}
	switch {
	case !l.asked:
		b.w.violate(endsByItself, "%s: %v", b.name(), l.err)
	case l.err != nil:
		b.w.violate(endsWhenAsked, "%s: %v", b.name(), l.err)
	}
	b.w.after(restartAfter, b.revive)
}
