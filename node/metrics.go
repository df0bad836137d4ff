package node

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

// collector turns a node's status into metrics when it is scraped.
type collector struct{ node *Node }

var ofRun = []string{"run"}

var (
	descVersion       = prometheus.NewDesc("sparsecast_version", "Step number of a version: the latest heard of, the one served.", []string{"run", "kind"}, nil)
	descPeers         = prometheus.NewDesc("sparsecast_peers", "Peers connected now.", nil, nil)
	descBehind        = prometheus.NewDesc("sparsecast_behind_versions", "By how many step numbers the served version is behind the latest heard of; absent while they are of different epochs.", ofRun, nil)
	descBehindSeconds = prometheus.NewDesc("sparsecast_behind_seconds", "Time since a version newer than the served one was first heard of, 0 when there is none.", ofRun, nil)
	descPinned        = prometheus.NewDesc("sparsecast_pinned", "1 while this node stays at one version (sparsecast pin), else 0.", ofRun, nil)
	descUnconfirmed   = prometheus.NewDesc("sparsecast_unconfirmed", "1 while the engine has not confirmed the served version (confirm: manual), else 0.", ofRun, nil)
	descChecked       = prometheus.NewDesc("sparsecast_checked_timestamp_seconds", "When all copies of the weights were last read whole, in seconds since 1970; absent before.", ofRun, nil)
	descDamaged       = prometheus.NewDesc("sparsecast_blocks_damaged_total", "Damaged blocks found in copies of the weights since the start.", ofRun, nil)
	descRepaired      = prometheus.NewDesc("sparsecast_blocks_repaired_total", "Damaged blocks that were repaired one by one since the start.", ofRun, nil)
	descBlocks        = prometheus.NewDesc("sparsecast_store_blocks", "Blocks on the disk of this host.", nil, nil)
	descBytes         = prometheus.NewDesc("sparsecast_store_bytes", "Bytes of the blocks on the disk of this host.", nil, nil)
	descOffered       = prometheus.NewDesc("sparsecast_offered_edges", "Edges on offer by the newest catalogue, by what they are for.", []string{"run", "kind"}, nil)
	descOfferedBytes  = prometheus.NewDesc("sparsecast_offered_bytes", "Coded bytes of the edges on offer, by what they are for.", []string{"run", "kind"}, nil)
	descReady         = prometheus.NewDesc("sparsecast_ready_seconds", "From publish to ready here of the served version, by the two hosts' clocks.", ofRun, nil)
)

func newMetrics(n *Node) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{n}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Describe is part of prometheus.Collector. The counters are left out: their names are known at scraping.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descVersion
	ch <- descPeers
	ch <- descReady
	ch <- descBehind
	ch <- descBehindSeconds
	ch <- descPinned
	ch <- descUnconfirmed
	ch <- descChecked
	ch <- descDamaged
	ch <- descRepaired
	ch <- descBlocks
	ch <- descBytes
	ch <- descOffered
	ch <- descOfferedBytes
}

// Collect is part of prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(descPeers, prometheus.GaugeValue, float64(len(c.node.mesh.Peers())))
	blocks, bytes := c.node.store.Size()
	ch <- prometheus.MustNewConstMetric(descBlocks, prometheus.GaugeValue, float64(blocks))
	ch <- prometheus.MustNewConstMetric(descBytes, prometheus.GaugeValue, float64(bytes))
	for _, p := range c.node.parts {
		gauges{p.settings.Name, ch}.run(p.Status(context.Background()))
	}
	help := mesh.StatsHelp()
	for name, v := range c.node.stats.Snapshot() {
		desc := prometheus.NewDesc("sparsecast_"+name+"_total", help[name], nil, nil)
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(v))
	}
}

// gauges are the metrics of one run.
type gauges struct {
	name string
	ch   chan<- prometheus.Metric
}

func (g gauges) set(d *prometheus.Desc, v float64, labels ...string) {
	g.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{g.name}, labels...)...)
}

func (g gauges) run(s api.Status) {
	if s.Latest != nil {
		g.set(descVersion, float64(s.Latest.Number), "latest")
	}
	if s.Served != nil {
		g.set(descVersion, float64(s.Served.Number), "served")
	}
	for kind, o := range s.Offer {
		g.set(descOffered, float64(o.Edges), kind)
		g.set(descOfferedBytes, float64(o.Bytes), kind)
	}
	if s.Role == string(mesh.RoleRollout) {
		g.following(s)
	}
	if s.CheckedAt > 0 {
		g.set(descChecked, float64(s.CheckedAt)/1000)
	}
	for desc, n := range map[*prometheus.Desc]uint64{descDamaged: s.BlocksDamaged, descRepaired: s.BlocksRepaired} {
		g.ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), g.name)
	}
	if s.Served != nil && s.Served.ReadyAt > 0 && s.Served.PublishedAt > 0 { // of an older version only the number is known
		g.set(descReady, float64(s.Served.ReadyAt-s.Served.PublishedAt)/1000)
	}
}

// following tells how a rollout keeps up, and what holds it.
func (g gauges) following(s api.Status) {
	if s.Behind != nil {
		g.set(descBehind, float64(*s.Behind))
	}
	g.set(descBehindSeconds, s.BehindSeconds)
	g.set(descPinned, oneIf(s.Pin != nil))
	g.set(descUnconfirmed, oneIf(s.Unconfirmed != nil))
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
