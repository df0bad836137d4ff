package node

import "github.com/sparsecast/sparsecast/mesh"

// ForTest shows the inside of a node, and the first of its runs, to tests that cannot be in this package, since what
// they use imports it.
type ForTest struct {
	*Node
	*part
}

// Inside opens a node.
func Inside(n *Node) ForTest { return ForTest{n, n.parts[0]} }

// Store returns what the node keeps blocks in.
func (f ForTest) Store() mesh.Store { return f.store }

// Heard returns what the node knows of the run.
func (f ForTest) Heard() *mesh.Run { return f.run }
