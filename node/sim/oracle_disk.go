package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/record"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// engine reads what an inference engine would load from a directory.
func (b *box) engine(dir string) (sum, error) {
	files := make(map[string][]byte)
	for _, state := range b.w.plan.Form.names() {
		file, err := b.disk.ReadFile(path.Join(dir, state, weightsFile))
		if err != nil {
			return sum{}, err
		}
		files[state] = file
	}
	return b.w.oracle.sumOf(files)
}

// home returns the directory of all states that a file with weights belongs to.
func (b *box) home(file string) string {
	if b.w.plan.Form.states {
		return path.Dir(path.Dir(file))
	}
	return path.Dir(file)
}

// current returns where the link current leads to, empty when there is none.
func (b *box) current() string {
	eyes := b.disk.Mount()
	defer eyes.Kill()
	target, err := eyes.Readlink(path.Join(dataDir, "current"))
	if err != nil {
		return ""
	}
	if path.IsAbs(target) {
		return target
	}
	return path.Join(dataDir, target)
}

// files returns the paths in the data directory that end in a name, or all.
func (b *box) files(name string) []string {
	return slices.DeleteFunc(b.disk.Named(name), func(f string) bool { return !strings.HasPrefix(f, dataDir+"/") })
}

// head returns the newest head in the ledger; ok is false where there is none.
func (b *box) head() (h mesh.Head, ok bool, err error) { return b.recordedHead("head.signed") }

// recordedHead returns the head in a record of the ledger; ok is false where there is none.
func (b *box) recordedHead(name string) (h mesh.Head, ok bool, err error) {
	payload, err := b.signed(name)
	if payload == nil || err != nil {
		return h, false, err
	}
	h, err = mesh.DecodeHead(payload)
	return h, err == nil, err
}

// catalogue returns the newest catalogue in the ledger; ok is false where there is none.
func (b *box) catalogue() (c mesh.Catalogue, ok bool, err error) {
	payload, err := b.signed("catalogue.signed")
	if payload == nil || err != nil {
		return c, false, err
	}
	c, err = mesh.DecodeCatalogue(payload)
	return c, err == nil, err
}

// waysBack returns the edges that a node with one slot has kept for itself.
func (b *box) waysBack() (edges []mesh.Edge) {
	for _, f := range b.files("ways_back.json") {
		var note struct{ Ways []struct{ Edge mesh.Edge } }
		data, err := b.disk.ReadFile(f)
		if _, text, ok := bytes.Cut(data, []byte("\n")); err != nil || !ok || json.Unmarshal(text, &note) != nil {
			continue // it holds none back then
		}
		for _, w := range note.Ways {
			edges = append(edges, w.Edge)
		}
	}
	return edges
}

// signed returns the payload of a record of the ledger, nil where there is none.
func (b *box) signed(name string) ([]byte, error) {
	found := b.files(name)
	if len(found) == 0 {
		return nil, nil
	}
	raw, err := b.disk.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	e, err := record.UnmarshalEnvelope(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", found[0], err)
	}
	return e.RawPayload, nil
}

// block reads a block as the store does.
func (b *box) block(id cid.Cid) ([]byte, error) {
	found := b.files(id.String())
	if len(found) == 0 {
		return nil, fmt.Errorf("block %s: %w", id, fs.ErrNotExist)
	}
	data, err := b.disk.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	return data, delta.Check(id, data)
}

// need adds all blocks of an edge to a set. Without all reports a block that is not there or damaged.
func (b *box) need(e mesh.Edge, set map[string]bool) error {
	set[e.Manifest.String()] = true
	data, err := b.block(e.Manifest)
	if err != nil {
		return err
	}
	var errs []error
	m, err := delta.DecodeManifest(data, func(id cid.Cid) ([]byte, error) {
		set[id.String()] = true
		return b.block(id)
	})
	if err != nil {
		return err
	}
	for _, id := range slices.Concat([]cid.Cid{m.Schema}, m.Chunks, m.Outboard) {
		set[id.String()] = true
		if _, err := b.block(id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// blocks returns the names of all stored blocks.
func (b *box) blocks() (ids []string) {
	for _, f := range b.files("") {
		if strings.Contains(f, "/blocks/") {
			if _, err := cid.Decode(path.Base(f)); err == nil {
				ids = append(ids, path.Base(f))
			}
		}
	}
	return ids
}
