package mesh

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ipfs/go-cid"
	"github.com/sparsecast/sparsecast/delta"
)

// Version orders the states of a run: first by the trainer's epoch, then by its step number.
type Version struct {
	Epoch  uint64 `json:"epoch"`  // milliseconds since 1970 when the trainer started; see BaseVersion for that of a base
	Number uint64 `json:"number"` // the trainer's step
}

// Compare returns -1, 0 or +1 as v is older than, equal to or newer than w.
func (v Version) Compare(w Version) int {
	if c := cmp.Compare(v.Epoch, w.Epoch); c != 0 {
		return c
	}
	return cmp.Compare(v.Number, w.Number)
}

// String tells users which version it is.
func (v Version) String() string { return fmt.Sprintf("%d of epoch %s", v.Number, EpochName(v.Epoch)) }

// Bases are announced in epochs of the 17 minutes after 1970, the lower half of which is left out: no clock opens these.
const firstBase, pastBases = 1 << 19, 1 << 20

// BaseVersion returns the version that a base checkpoint is announced as before anything is published: number 0 in an
// epoch below all in which something is. So whoever knows a version stays with that, even when the trainer that published
// it has forgotten all and announces its base again. Other bases most likely have other epochs, so that a trainer that
// starts anew from another base does not contradict itself.
func BaseVersion(root delta.Root) Version {
	return Version{Epoch: firstBase + uint64(binary.BigEndian.Uint32(root[:4]))%(pastBases-firstBase)}
}

// isBase tells whether v is that of a base.
func (v Version) isBase() bool { return v.Number == 0 && v.Epoch >= firstBase && v.Epoch < pastBases }

// Shares tells whether the numbers of v and w count the same steps: they are of one epoch, or one of them is a base, which
// is number 0 to every epoch.
func (v Version) Shares(w Version) bool { return v.Epoch == w.Epoch || v.isBase() || w.isBase() }

// lastNamed is the last epoch with a time that reads like one, in the year 9999.
const lastNamed = 253402300799999

// EpochName tells when an epoch was opened, to the millisecond: epochs are told apart by that.
func EpochName(epoch uint64) string {
	switch {
	case epoch > lastNamed:
		return fmt.Sprint(epoch)
	case epoch >= firstBase && epoch < pastBases:
		return "base"
	}
	return time.UnixMilli(int64(epoch)).UTC().Format("2006-01-02 15:04:05.000")
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

// edgeRecord is an Edge on the wire.
type edgeRecord struct {
	_        struct{} `cbor:",toarray"`
	Manifest []byte   // digest; empty when undefined
	Base     []byte
	Target   []byte
	Coded    uint64
}

// headRecord is a Head on the wire.
type headRecord struct {
	Format  uint64     `cbor:"0,keyasint"`
	Run     string     `cbor:"1,keyasint"`
	Epoch   uint64     `cbor:"2,keyasint"`
	Number  uint64     `cbor:"3,keyasint"`
	Root    []byte     `cbor:"4,keyasint"`
	Schema  []byte     `cbor:"5,keyasint"`
	Edge    edgeRecord `cbor:"6,keyasint"`
	Created int64      `cbor:"7,keyasint"`
}

// Validate reports the first rule that h breaks. Encoding and decoding both apply it.
func (h *Head) Validate() error {
	if err := checkRun(h.Run); err != nil {
		return err
	}
	switch {
	case h.Root.IsZero():
		return errors.New("no root")
	case !h.Schema.Defined():
		return errors.New("no schema")
	case h.Version.Epoch > math.MaxInt64:
		return fmt.Errorf("epoch %d is beyond all clocks", h.Version.Epoch)
	case h.Edge.Manifest.Defined() && h.Edge.Target != h.Root:
		return errors.New("the edge leads to another root than the head's")
	}
	return nil
}

// Encode returns the canonical bytes of h, unsigned.
func (h *Head) Encode() ([]byte, error) {
	if err := h.Validate(); err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	schema, err := delta.Digest(h.Schema)
	if err != nil {
		return nil, fmt.Errorf("head: schema: %w", err)
	}
	edge, err := h.Edge.record()
	if err != nil {
		return nil, fmt.Errorf("head: edge: %w", err)
	}
	return delta.MarshalRecord(headRecord{
		Format: 1, Run: h.Run, Epoch: h.Version.Epoch, Number: h.Version.Number,
		Root: h.Root[:], Schema: schema, Edge: edge, Created: h.Created,
	})
}

// DecodeHead reads what Encode wrote and refuses everything else. It knows nothing of signatures.
func DecodeHead(b []byte) (Head, error) {
	if len(b) > maxHead {
		return Head{}, fmt.Errorf("head: %d bytes, at most %d", len(b), maxHead)
	}
	var r headRecord
	if err := delta.UnmarshalRecord(b, &r); err != nil {
		return Head{}, fmt.Errorf("head: %w", err)
	}
	if r.Format != 1 {
		return Head{}, fmt.Errorf("head: format %d, this build reads 1; upgrade sparsecast", r.Format)
	}
	h := Head{Run: r.Run, Version: Version{r.Epoch, r.Number}, Created: r.Created}
	var err error
	if h.Root, err = rootOf(r.Root); err != nil {
		return Head{}, fmt.Errorf("head: %w", err)
	}
	if h.Schema, err = delta.FromDigest(r.Schema); err != nil {
		return Head{}, fmt.Errorf("head: schema: %w", err)
	}
	if h.Edge, err = r.Edge.edge(); err != nil {
		return Head{}, fmt.Errorf("head: edge: %w", err)
	}
	if err := h.Validate(); err != nil {
		return Head{}, fmt.Errorf("head: %w", err)
	}
	return h, nil
}

func (e *Edge) record() (edgeRecord, error) {
	r := edgeRecord{Manifest: []byte{}, Base: e.Base[:], Target: e.Target[:], Coded: e.Coded}
	if !e.Manifest.Defined() {
		return r, nil
	}
	d, err := delta.Digest(e.Manifest)
	r.Manifest = d
	return r, err
}

func (r *edgeRecord) edge() (e Edge, err error) {
	if e.Base, err = rootOf(r.Base); err != nil {
		return Edge{}, fmt.Errorf("base: %w", err)
	}
	if e.Target, err = rootOf(r.Target); err != nil {
		return Edge{}, fmt.Errorf("target: %w", err)
	}
	e.Coded = r.Coded
	if r.Manifest == nil { // CBOR null: the empty string is the one way to write an undefined manifest
		return Edge{}, errors.New("manifest: null")
	}
	if len(r.Manifest) > 0 {
		e.Manifest, err = delta.FromDigest(r.Manifest)
	}
	return e, err
}

func rootOf(b []byte) (delta.Root, error) {
	if len(b) != delta.RootSize {
		return delta.Root{}, fmt.Errorf("root of %d bytes, want %d", len(b), delta.RootSize)
	}
	return delta.Root(b), nil
}
