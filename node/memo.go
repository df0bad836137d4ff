package node

import (
	"bytes"
	"fmt"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
)

// memo is a note that spares work after a restart, and no more: it is written when what it says has changed, and when it
// cannot be, that is told once and hinders nobody.
type memo[T interface{ check() error }] struct {
	note[T]
	dir    *files.Dir
	log    zerolog.Logger
	there  []byte // on the disk; of the zero T when there is nothing
	silent bool   // a failure was told
}

// recall returns what was kept last, the zero T when that is nothing, or nothing that makes sense.
func (m *memo[T]) recall() T {
	v, _, err := m.load(m.dir)
	if err == nil {
		if err = v.check(); err != nil {
			err = fmt.Errorf("%s: %w", m.dir.Path(m.file), err)
		}
	}
	if err != nil {
		m.log.Warn().Err(err).Msg(m.what + " is not known any more: some of it may have to be fetched again")
		var none T
		return none // what is on the disk is no T, so whatever comes is written
	}
	m.there, _ = marshalChecked(v)
	return v
}

// keep notes v. What is on the disk already is not written again.
func (m *memo[T]) keep(v T) {
	b, err := marshalChecked(v)
	if err == nil && bytes.Equal(b, m.there) {
		return
	}
	if err == nil {
		err = m.dir.WriteDurable(m.file, b)
	}
	if err == nil {
		m.there, m.silent = b, false
		return
	}
	if !m.silent {
		m.log.Warn().Err(fmt.Errorf("note %s: %w", m.what, err)).Msg("some of it may have to be fetched again after a restart")
	}
	m.silent = true
}

// maxNoted bounds the edges of one memo: a few catalogues of the largest size.
const maxNoted = 1 << 14

// checkEdges tells whether edges that were read from a file can be some.
func checkEdges(edges []mesh.Edge) error {
	if len(edges) > maxNoted {
		return fmt.Errorf("%d edges, at most %d", len(edges), maxNoted)
	}
	for i, e := range edges {
		if _, err := delta.Digest(e.Manifest); err != nil {
			return fmt.Errorf("edge %d: manifest: %w", i, err)
		}
		if e.Target.IsZero() || e.Base == e.Target {
			return fmt.Errorf("edge %d leads nowhere", i)
		}
	}
	return nil
}
