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

var (
	descVersion = prometheus.NewDesc("sparsecast_version", "Step number of a version: the latest heard of, the one served.", []string{"kind"}, nil)
	descPeers   = prometheus.NewDesc("sparsecast_peers", "Peers connected now.", nil, nil)
	descReady   = prometheus.NewDesc("sparsecast_ready_seconds", "From publish to ready here of the served version, by the two hosts' clocks.", nil, nil)
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
}

// Collect is part of prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := c.node.Status(context.Background())
	ch <- prometheus.MustNewConstMetric(descPeers, prometheus.GaugeValue, float64(len(s.Peers)))
	c.version(ch, "latest", s.Latest)
	c.version(ch, "served", s.Served)
	if s.Served != nil && s.Served.ReadyAt > 0 {
		ms := float64(s.Served.ReadyAt - s.Served.PublishedAt)
		ch <- prometheus.MustNewConstMetric(descReady, prometheus.GaugeValue, ms/1000)
	}
	help := mesh.StatsHelp()
	for name, v := range s.Counters {
		desc := prometheus.NewDesc("sparsecast_"+name+"_total", help[name], nil, nil)
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(v))
	}
}

func (c collector) version(ch chan<- prometheus.Metric, kind string, v *api.VersionInfo) {
	if v != nil {
		ch <- prometheus.MustNewConstMetric(descVersion, prometheus.GaugeValue, float64(v.Number), kind)
	}
}
