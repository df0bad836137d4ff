package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/api"
	"github.com/sparsecast/sparsecast/node/files"
)

// paths are where the checkpoints of one version lie, by state; the only state of a version usually has no name.
type paths map[string]string

// names returns the names of the states, in order.
func (p paths) names() []string { return slices.Sorted(maps.Keys(p)) }

// check refuses names that no state can have, a state without a name beside others, and names that are one on disks
// that do not tell large letters from small ones.
func (p paths) check() error {
	folded := make(map[string]string)
	for _, name := range p.names() {
		if other, twice := folded[strings.ToLower(name)]; twice {
			return fmt.Errorf("states %s and %s differ only in large and small letters, which some disks do not tell apart", other, name)
		}
		folded[strings.ToLower(name)] = name
		switch {
		case name == "" && len(p) > 1:
			return errors.New("a state without a name beside others")
		case name != "" && !namePattern.MatchString(name):
			return fmt.Errorf("%q is no name of a state", name)
		case p[name] == "":
			return fmt.Errorf("state %s: no path", name)
		}
	}
	return nil
}

// states are all states of one version in their checkpoints, under one schema. They are one delta.State.
type states struct {
	*delta.Bundle
	names []string
	parts []*delta.Checkpoint // by name
}

// openStates opens the checkpoints of a version, to be cut as cut says.
func openStates(fsys files.FS, p paths, cut delta.Cutting) (*states, error) {
	return openStatesUnder(fsys, p, func(list []delta.StateTensors) (*delta.Schema, error) { return delta.NewSchemaOf(list, cut) })
}

// openStatesUnder is openStates for whoever knows the schema, or how to get one.
func openStatesUnder(fsys files.FS, p paths, under func([]delta.StateTensors) (*delta.Schema, error)) (*states, error) {
	s := &states{names: p.names()}
	var list []delta.StateTensors
	byName := make(map[string]delta.State, len(p))
	for _, name := range s.names {
		c, err := delta.OpenCheckpointOn(fsys, p[name])
		if err != nil {
			return nil, errors.Join(inState(name, err), s.Close())
		}
		s.parts = append(s.parts, c)
		list = append(list, delta.StateTensors{Name: name, Tensors: c.Tensors()})
		byName[name] = c
	}
	schema, err := under(list)
	if err == nil {
		s.Bundle, err = delta.NewBundle(schema, byName)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Weights are all states of one version in checkpoints that are open.
type Weights interface {
	delta.State
	io.Closer
	Changed() error // reports the first file that is not what it was when it was opened
}

// OpenWeights opens the checkpoints of a version by the names of their states; a single one may have none. Options say how
// a run cuts them, which is part of their root.
func OpenWeights(fsys files.FS, checkpoints map[string]string, o RunOptions) (Weights, error) {
	p := paths(checkpoints)
	if err := p.check(); err != nil {
		return nil, err
	}
	s, err := openStates(fsys, p, o.cutting())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// inState names the state that an error is about, where it has a name.
func inState(name string, err error) error {
	if name == "" || err == nil {
		return err
	}
	return fmt.Errorf("state %s: %w", name, err)
}

// checkAny refuses a state without tensors. Nothing speaks for publishing one, and an empty file looks like it.
func (s *states) checkAny() error {
	for i, c := range s.parts {
		if len(c.Tensors()) == 0 {
			return inState(s.names[i], fmt.Errorf("%s: no tensors", strings.Join(c.Files(), ", ")))
		}
	}
	return nil
}

// Files returns the paths of all weight files.
func (s *states) Files() (list []string) {
	for _, c := range s.parts {
		list = append(list, c.Files()...)
	}
	return list
}

// Changed reports the first file that is not what it was when it was opened.
func (s *states) Changed() error {
	for i, c := range s.parts {
		if err := c.Changed(); err != nil {
			return inState(s.names[i], err)
		}
	}
	return nil
}

// Close closes all files.
func (s *states) Close() error {
	var errs []error
	for _, c := range s.parts {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// odd returns the encoded schema, unless it is the one that the checkpoint alone tells.
func (s *states) odd() []byte {
	schema := s.Schema()
	if len(s.parts) == 1 && s.names[0] == "" && s.parts[0].Schema().ID().Equals(schema.ID()) {
		return nil
	}
	return schema.Encode()
}

// sameSchema tells whether s is under the schema that odd returned of another.
func (s *states) sameSchema(odd []byte) bool { return bytes.Equal(s.odd(), odd) }

// drafts are all states of one version in the making: a delta.Sink, and a delta.State of what was written so far.
type drafts struct {
	*delta.Bundle
	sink  *delta.BundleSink
	parts []*delta.Draft
}

// createStates begins the checkpoints of a version, one file a state.
func createStates(fsys files.FS, p paths, schema *delta.Schema) (*drafts, error) {
	d := &drafts{}
	written, sinks := make(map[string]delta.State), make(map[string]delta.Sink)
	for i, r := range schema.States() {
		own, err := schema.StateSchema(i)
		var part *delta.Draft
		if err == nil {
			part, err = delta.CreateDraftOn(fsys, p[r.Name], own)
		}
		if err != nil {
			return nil, errors.Join(inState(r.Name, err), d.Abort())
		}
		d.parts = append(d.parts, part)
		written[r.Name], sinks[r.Name] = part, part
	}
	var err error
	if d.Bundle, err = delta.NewBundle(schema, written); err == nil {
		d.sink, err = delta.NewBundleSink(schema, sinks)
	}
	if err != nil {
		return nil, errors.Join(err, d.Abort())
	}
	return d, nil
}

// WriteAt is part of delta.Sink.
func (d *drafts) WriteAt(t int, p []byte, off int64) error { return d.sink.WriteAt(t, p, off) }

// Place gives every file its name, which another may have until then.
func (d *drafts) Place() error {
	for _, part := range d.parts {
		if err := part.Place(); err != nil {
			return err
		}
	}
	return nil
}

// Abort removes what was not placed.
func (d *drafts) Abort() error {
	var errs []error
	for _, part := range d.parts {
		errs = append(errs, part.Abort())
	}
	return errors.Join(errs...)
}

// statesGone returns the names of the states that were there before and are not now.
func statesGone(before, now *delta.Schema) (gone []string) {
	for _, old := range before.States() {
		if !slices.ContainsFunc(now.States(), func(s delta.StateRange) bool { return s.Name == old.Name }) {
			gone = append(gone, old.Name)
		}
	}
	return gone
}

// stateMissing says which states a version lacks: a name that was forgotten must not take a state away from everybody.
func stateMissing(before *delta.Schema, gone []string) error {
	lost := strings.Join(gone, ", ")
	if lost == "" {
		lost = "the one without a name"
	}
	return api.NewError(http.StatusConflict,
		fmt.Errorf("the version before has states (%s) that this one lacks: %s", stateNames(before), lost),
		"name all states, each as NAME=PATH; to let a state go for good, publish with --full")
}

// stateNames says which states there are, for messages.
func stateNames(s *delta.Schema) string {
	var names []string
	for _, r := range s.States() {
		names = append(names, r.Name)
	}
	if len(names) == 1 && names[0] == "" {
		return "one without a name"
	}
	return strings.Join(names, ", ")
}
