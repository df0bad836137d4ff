package node

import (
	"errors"

	"github.com/sparsecast/sparsecast/delta"
)

// patches are all states of a version in a slot that is changed where it lies: a delta.State and a delta.Sink.
type patches struct {
	*states
	sink  *delta.BundleSink
	files []*delta.Patch
}

// openPatches opens what lies in a slot of our own for changes.
func (s *slots) openPatches(sl slot) (*patches, error) {
	c, err := s.read(sl)
	if err != nil {
		return nil, err
	}
	p := &patches{states: c}
	sinks := make(map[string]delta.Sink)
	at := s.layout(sl, c.Schema(), s.found)
	for _, name := range at.names() {
		f, err := delta.OpenPatchOn(s.dir.FS(), at[name])
		if err != nil {
			return nil, errors.Join(inState(name, err), p.Close())
		}
		p.files = append(p.files, f)
		sinks[name] = f
	}
	if p.sink, err = delta.NewBundleSink(c.Schema(), sinks); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// WriteAt is part of delta.Sink.
func (p *patches) WriteAt(t int, b []byte, off int64) error { return p.sink.WriteAt(t, b, off) }

// Close closes all files.
func (p *patches) Close() error {
	errs := []error{p.states.Close()}
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
