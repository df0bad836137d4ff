package mesh

import (
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
)

// TestExchangeOverTCP runs real hosts on loopback: other streams and other errors than the simulated network has.
func TestExchangeOverTCP(t *testing.T) {
	p := newPayload(t, 128, 1)
	var hosts []host.Host
	var nodes []*testNode
	for i := range 5 {
		h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics(),
			libp2p.DisableIdentifyAddressDiscovery())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hello := Hello{Role: RoleRollout, Cluster: "a", Runs: []string{testRun}}
		if i == 0 {
			hello.Role = RoleTrainer
		}
		n := startNode(t, h, hello, ExchangeConfig{})
		defer n.halt()
		for _, other := range hosts {
			connect(t, h, other)
		}
		hosts, nodes = append(hosts, h), append(nodes, n)
	}
	p.fill(t, nodes[0].store, 0, 128)
	fetchAll(t, p, nodes[1:]...)
	if got := nodes[0].egress(p); got > 1.6 {
		t.Errorf("the source sent %.2f payloads, want at most 1.6", got)
	}
}
