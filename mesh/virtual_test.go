package mesh

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"
	"github.com/marcopolo/simnet"
	"github.com/multiformats/go-multiaddr"
	"github.com/quic-go/quic-go"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
)

// virtually runs f in virtual time, with a network of 10 ms a way.
func virtually(t *testing.T, f func(t *testing.T, n *virtualNet)) {
	t.Helper()
	if underRace { // with more, the race detector's own scheduling makes virtual time stall
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, func(t *testing.T) {
		n := newVirtualNet(10 * time.Millisecond)
		defer n.close()
		f(t, n)
	})
}

// virtualNet is a simulated network with real hosts on it. It lives inside one synctest bubble.
type virtualNet struct {
	sim  *simnet.Simnet
	mu   sync.Mutex
	gone map[[2]string]bool // pairs of addresses between which packets are lost; "" is any
	next int
	stop []func()
	role Role           // of nodes that join from now on; RoleRollout unless set
	skew time.Duration  // by which their clocks are ahead
	log  zerolog.Logger // of nodes that join from now on; silent unless set
	runs []string       // likewise, the run of node.run first; testRun unless set
}

func newVirtualNet(latency time.Duration) *virtualNet {
	n := &virtualNet{gone: make(map[[2]string]bool)}
	n.sim = &simnet.Simnet{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		LatencyFunc: func(p *simnet.Packet) time.Duration {
			if n.lost(ipOf(p.From), ipOf(p.To)) {
				return 1000 * time.Hour
			}
			return latency
		},
	}
	n.sim.Start()
	return n
}

func ipOf(a net.Addr) string { return a.(*net.UDPAddr).IP.String() }

// cut loses all packets between two addresses, or of one with everybody, without telling anyone.
func (n *virtualNet) cut(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone[[2]string{from, to}], n.gone[[2]string{to, from}] = true, true
}

// mend takes a cut back.
func (n *virtualNet) mend(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.gone, [2]string{from, to})
	delete(n.gone, [2]string{to, from})
}

func (n *virtualNet) lost(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone[[2]string{from, to}] || n.gone[[2]string{from, ""}] || n.gone[[2]string{"", to}]
}

// close stops everything that was started, newest first.
func (n *virtualNet) close() {
	for _, f := range slices.Backward(n.stop) {
		f()
	}
	n.sim.Close()
}

// host starts a host on an address of its own.
func (n *virtualNet) host(t *testing.T, key crypto.PrivKey, members *Members, stats *Stats) (h host.Host, ip string) {
	t.Helper()
	n.next++
	ip = fmt.Sprintf("1.0.0.%d", n.next)
	h, err := NewHost(HostConfig{
		Key: key, Members: members,
		Listen:  []multiaddr.Multiaddr{multiaddr.StringCast("/ip4/" + ip + "/udp/4001/quic-v1")},
		Options: []libp2p.Option{n.quic()},
	}, stats)
	if err != nil {
		t.Fatal(err)
	}
	n.stop = append(n.stop, func() { h.Close() })
	return h, ip
}

type fixedSource struct{ ip net.IP }

func (s *fixedSource) PreferredSourceIPForDestination(*net.UDPAddr) (net.IP, error) { return s.ip, nil }

// quic has a host's QUIC transport use the simulated network. The connection manager must be closed by whoever
// supplies it, hence the hook.
func (n *virtualNet) quic() libp2p.Option {
	source := &fixedSource{}
	link := simnet.LinkSettings{BitsPerSecond: 100_000_000}
	build := func(reset quic.StatelessResetKey, token quic.TokenGeneratorKey) (*quicreuse.ConnManager, error) {
		m, err := quicreuse.NewConnManager(reset, token,
			quicreuse.OverrideSourceIPSelector(func() (quicreuse.SourceIPSelector, error) { return source, nil }),
			quicreuse.OverrideListenUDP(func(_ string, a *net.UDPAddr) (net.PacketConn, error) {
				source.ip = a.IP
				return n.sim.NewEndpoint(a, simnet.NodeBiDiLinkSettings{Uplink: link, Downlink: link}), nil
			}))
		if err == nil {
			n.stop = append(n.stop, func() { m.Close() })
		}
		return m, err
	}
	return libp2p.QUICReuse(build)
}

// node is one Mesh with its host, in one run.
type node struct {
	*Mesh
	run   *Run // the first of runs
	runs  []*Run
	host  host.Host
	key   crypto.PrivKey
	ip    string
	stats *Stats
	disk  *diskStub
	stop  func() // ends Run, not the host
}

func (n *node) id() peer.ID { return n.host.ID() }

func (n *node) info() peer.AddrInfo {
	return peer.AddrInfo{ID: n.host.ID(), Addrs: n.host.Network().ListenAddresses()}
}

func clockAhead(skew time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(skew) }
}

// The methods of node are those of its first run.

func (n *node) Publish(ctx context.Context, h Head, c Catalogue, key crypto.PrivKey) error {
	return n.run.Publish(ctx, h, c, key)
}

func (n *node) Latest() (Head, Catalogue, peer.ID, bool) { return n.run.Latest() }

// team is what the nodes of a test share: keys by index, so that members are known before hosts exist.
type team struct {
	keys      []crypto.PrivKey
	members   *Members
	publisher crypto.PrivKey
}

func newTeam(size int) *team {
	tm := &team{publisher: testKey(1000)}
	var ids []peer.ID
	for i := range size {
		k := testKey(i)
		tm.keys = append(tm.keys, k)
		ids = append(ids, idOf(k))
	}
	tm.members = NewMembers(ids...)
	return tm
}

// testKey returns the same key for the same number.
func testKey(n int) crypto.PrivKey {
	seed := [32]byte{byte(n), byte(n >> 8), 7}
	key, _, err := crypto.GenerateEd25519Key(rand.NewChaCha8(seed))
	if err != nil {
		panic(err)
	}
	return key
}

func idOf(key crypto.PrivKey) peer.ID {
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		panic(err)
	}
	return id
}

func (n *virtualNet) runsOrDefault() []string {
	if len(n.runs) == 0 {
		return []string{testRun}
	}
	return n.runs
}

// shelf is the part of a disk that holds the ledger of one run.
type shelf struct {
	FS
	dir string
}

// below gives each run a part of its own, but the first kind of tests, which look at the disk, all of it.
func below(disk *diskStub, run string) FS {
	if run == testRun {
		return disk
	}
	return shelf{disk, run + "/"}
}

func (s shelf) ReadFile(name string) ([]byte, error) { return s.FS.ReadFile(s.dir + name) }

func (s shelf) WriteDurable(name string, data []byte) error {
	return s.FS.WriteDurable(s.dir+name, data)
}

// join starts member i of tm on the network. disk may be nil.
func (n *virtualNet) join(t *testing.T, tm *team, i int, disk *diskStub, bootstrap ...peer.AddrInfo) *node {
	t.Helper()
	if disk == nil {
		disk = newDiskStub()
	}
	nd := &node{key: tm.keys[i], stats: new(Stats), disk: disk}
	nd.host, nd.ip = n.host(t, nd.key, tm.members, nd.stats)
	m, err := New(nd.host, Config{
		Role: cmp.Or(n.role, RoleRollout), Members: tm.members, Bootstrap: bootstrap, Now: clockAhead(n.skew),
	}, NewMemoryStore(), nd.stats, n.log)
	if err != nil {
		t.Fatal(err)
	}
	nd.Mesh = m
	for _, run := range n.runsOrDefault() {
		r, err := m.Join(RunConfig{Name: run, Publishers: []peer.ID{idOf(tm.publisher)}}, below(disk, run))
		if err != nil {
			t.Fatal(err)
		}
		if nd.run == nil {
			nd.run = r
		}
		nd.runs = append(nd.runs, r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	nd.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("node %d: run: %v", i, err)
		}
	})
	n.stop = append(n.stop, nd.stop)
	return nd
}

// eventually waits, in virtual time, until ok holds, and fails after limit.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > limit {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

const testRun = "grpo-7b"

// testHead returns a head whose content follows from its version.
func testHead(v Version) Head {
	root := delta.Root(append([]byte{byte(v.Epoch), byte(v.Number)}, make([]byte, 30)...))
	root[31] = 1
	return Head{
		Run: testRun, Version: v, Root: root, Schema: delta.Sum([]byte("schema")),
		Edge:    Edge{Manifest: delta.Sum(fmt.Appendf(nil, "%d/%d", v.Epoch, v.Number)), Target: root, Coded: 1000},
		Created: 1_700_000_000_000,
	}
}

func testCatalogue(epoch, seq uint64, edges int) Catalogue {
	c := Catalogue{Run: testRun, Epoch: epoch, Seq: seq}
	for i := range edges {
		h := testHead(Version{epoch, uint64(i)})
		c.Edges = append(c.Edges, h.Edge)
		if i < maxVersions {
			c.Versions = append(c.Versions, VersionRoot{h.Version, h.Root})
		}
	}
	return c
}

// diskStub is a ledger's disk in memory. What was not synced is lost by crash, and fail makes it refuse writes.
type diskStub struct {
	mu     sync.Mutex
	files  map[string][]byte
	synced map[string][]byte
	fail   error
}

func newDiskStub() *diskStub {
	return &diskStub{files: make(map[string][]byte), synced: make(map[string][]byte)}
}

func (d *diskStub) ReadFile(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(b), nil
}

func (d *diskStub) WriteFile(name string, data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return d.fail
	}
	d.files[name] = slices.Clone(data)
	return nil
}

func (d *diskStub) Sync(names ...string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range names {
		b, ok := d.files[name]
		if !ok {
			return errors.New("sync of a file that is not there")
		}
		d.synced[name] = b
	}
	return nil
}

func (d *diskStub) WriteDurable(name string, data []byte) error {
	if err := d.WriteFile(name, data); err != nil {
		return err
	}
	return d.Sync(name)
}

func (d *diskStub) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, name)
	delete(d.synced, name)
	return nil
}

func (d *diskStub) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.files {
		if strings.HasPrefix(name, dir) {
			names = append(names, name)
		}
	}
	return names, nil
}

func (d *diskStub) Size(name string) (int64, error) {
	b, err := d.ReadFile(name)
	return int64(len(b)), err
}

func (d *diskStub) setFail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// crash returns what a machine finds after losing power: of a file that was replaced and not synced the new name and
// none of the new bytes, as file systems are free to leave it.
func (d *diskStub) crash() *diskStub {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDiskStub()
	for name, b := range d.synced {
		if !bytes.Equal(b, d.files[name]) {
			b = nil
		}
		after.files[name], after.synced[name] = b, b
	}
	return after
}
