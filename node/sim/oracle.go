package sim

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// oracle knows every state that was handed in to be published, and what the nodes have said about versions.
// It is safe for concurrent use.
type oracle struct {
	mu       sync.Mutex
	states   map[delta.Root]sum
	numbers  map[delta.Root]map[uint64]bool // that a root was to be published under; absent means any
	makers   map[delta.Root]map[int]bool    // the machines whose programs handed it in
	versions map[mesh.Version][]delta.Root  // as seen, more than one only of twins
	twins    bool                           // two trainers that knew nothing of each other have published at one instant
	openers  map[uint64]map[int]bool        // of an epoch: the machines that opened it by themselves
	read     map[[sha256.Size]byte]sum      // of checkpoints by their bytes: the same ones are looked at again and again
}

// nobody is who makes the base.
const nobody = -1

func newOracle() *oracle {
	return &oracle{
		states: make(map[delta.Root]sum), numbers: make(map[delta.Root]map[uint64]bool),
		makers: make(map[delta.Root]map[int]bool), versions: make(map[mesh.Version][]delta.Root),
		openers: make(map[uint64]map[int]bool), read: make(map[[sha256.Size]byte]sum),
	}
}

// hand notes that w is about to be published by a machine as a number, nil for whatever the node chooses.
func (o *oracle) hand(who int, w *weights, number *uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	root := w.root()
	o.states[root] = w.sum()
	if o.makers[root] == nil {
		o.makers[root] = make(map[int]bool)
	}
	if who != nobody {
		o.makers[root][who] = true
	}
	switch known, ok := o.numbers[root]; {
	case number == nil:
		o.numbers[root] = nil
	case !ok:
		o.numbers[root] = map[uint64]bool{*number: true}
	case known != nil:
		known[*number] = true
	}
}

// expectTwins says that from now on versions may have two roots, if two machines handed those in.
func (o *oracle) expectTwins() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.twins = true
}

// see judges a version that a node knows.
func (o *oracle) see(v mesh.Version, root delta.Root) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	numbers, ok := o.numbers[root]
	known := o.versions[v]
	switch {
	case !ok:
		return fmt.Errorf("version %s has root %s, which nobody published", v, root.Short())
	case numbers != nil && !numbers[v.Number]:
		return fmt.Errorf("version %s has root %s, which was never to have that number", v, root.Short())
	case slices.Contains(known, root):
		return nil
	case len(known) > 0 && !o.ofTwins(v.Epoch, known[0], root):
		return fmt.Errorf("version %s has root %s here and %s elsewhere", v, root.Short(), known[0].Short())
	}
	o.versions[v] = append(known, root)
	return nil
}

// made tells whether a machine handed a state in.
func (o *oracle) made(root delta.Root, who int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.makers[root][who]
}

// open notes that a machine has opened an epoch. Another one may have before it could hear of that.
func (o *oracle) open(epoch uint64, who int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.openers[epoch] == nil {
		o.openers[epoch] = make(map[int]bool)
	}
	o.openers[epoch][who] = true
}

// ofTwins tells whether two trainers may have published these roots in one epoch as one version.
func (o *oracle) ofTwins(epoch uint64, root, other delta.Root) bool {
	for who := range o.makers[root] {
		for twin := range o.makers[other] {
			if who != twin && (o.twins || o.openers[epoch][who] && o.openers[epoch][twin]) {
				return true
			}
		}
	}
	return false
}

// holds tells whether s is what a root stands for.
func (o *oracle) holds(root delta.Root, s sum) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	want, ok := o.states[root]
	return ok && want == s
}

// sumOf reads the safetensors files of all states as an engine does.
func (o *oracle) sumOf(files map[string][]byte) (sum, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := sha256.New()
	for _, state := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q %d ", state, len(files[state]))
		h.Write(files[state])
	}
	key := sum(h.Sum(nil))
	if s, ok := o.read[key]; ok {
		return s, nil
	}
	s, err := sumOf(files)
	if err == nil {
		o.read[key] = s
	}
	return s, err
}

// rootOf returns the root of a state that was handed in.
func (o *oracle) rootOf(s sum) (delta.Root, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for root, known := range o.states {
		if known == s {
			return root, true
		}
	}
	return delta.Root{}, false
}

// span returns the oldest and the newest version with a root.
func (o *oracle) span(root delta.Root) (oldest, newest mesh.Version, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for v, roots := range o.versions {
		if !slices.Contains(roots, root) {
			continue
		}
		if !ok || v.Compare(oldest) < 0 {
			oldest = v
		}
		if !ok || v.Compare(newest) > 0 {
			newest = v
		}
		ok = true
	}
	return oldest, newest, ok
}
