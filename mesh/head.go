package mesh

import (
	"cmp"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// Version orders the states of a run: first by the trainer's epoch, then by its step number.
type Version struct {
	Epoch  uint64 `json:"epoch"`  // milliseconds since 1970 when the trainer started
	Number uint64 `json:"number"` // the trainer's step
}

// Compare returns -1, 0 or +1 as v is older than, equal to or newer than w.
func (v Version) Compare(w Version) int {
	if c := cmp.Compare(v.Epoch, w.Epoch); c != 0 {
		return c
	}
	return cmp.Compare(v.Number, w.Number)
}

// Edge offers one delta or anchor: the coded bytes that lead from the state Base to the state Target.
type Edge struct {
	Manifest cid.Cid
	Base     delta.Root // zero for an anchor
	Target   delta.Root
	Coded    uint64 // bytes to fetch
}

// Head is the small signed record of a run's newest version.
type Head struct {
	Run     string
	Version Version
	Root    delta.Root
	Schema  cid.Cid
	Edge    Edge  // the edge that leads here from the version before; its Manifest is undefined when nothing needs to be fetched
	Created int64 // milliseconds since 1970, for humans and measurements only
}
