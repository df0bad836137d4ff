package node

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// What an engine loads beside the weights (config, tokenizer, chat template) does not change with a delta, so it is handed
// on from slot to slot. An anchor begins anew: beside a state that has the tensors of the base lie the files of the base,
// which users tune, see copySidecars. Beside any other lies what travels with the anchor, since the base's would tell an
// engine of another model. So a newcomer that has nothing gets a directory which an engine can load, too.

// lay puts a file beside the weights of a state.
type lay func(state, file string, b []byte) error

// dress lays the files beside the weights of a version into the slot to. They are durable, since nothing can tell after a
// loss of power whether they are whole.
func (s *slots) dress(to, from slot, schema *delta.Schema, m *delta.Manifest, chunk func(i int) ([]byte, error)) error {
	if from.name == to.name {
		return nil
	}
	if !m.Base.IsZero() {
		s.misfits[to.name] = s.misfits[from.name]
		_, err := s.dressFrom(to, schema, func(lay lay) error { return s.handOn(from, schema, lay) })
		return err
	}
	fits := s.fits(schema)
	laid, err := s.dressFrom(to, schema, func(lay lay) error {
		for state := range fits {
			whole := make(map[string][]byte) // read before any is laid: all of them or none
			err := eachSidecar(s.dir.FS(), s.base.from[state], func(file string, b []byte) error { whole[file] = b; return nil })
			if err != nil {
				s.log.Warn().Err(inState(state, err)).Msg("files beside the base cannot be read, taking those that travel with the version")
				delete(fits, state)
				continue
			}
			for file, b := range whole {
				if err := lay(state, file, b); err != nil {
					return err
				}
			}
		}
		return delta.ReadSidecars(m, chunk, func(c delta.Sidecar, content io.Reader) error {
			state, file := c.Split()
			if fits[state] || c.Size > files.MaxFile { // nobody of ours sends that
				return nil
			}
			b, err := io.ReadAll(content)
			if err != nil {
				return err
			}
			return lay(state, file, b)
		})
	})
	s.misfits[to.name] = nil
	for _, r := range schema.States() {
		if s.dressed[r.Name].Defined() && !fits[r.Name] && len(laid[r.Name]) == 0 {
			s.misfits[to.name] = append(s.misfits[to.name], r.Name)
		}
	}
	return err
}

// handOn lays what lies beside the states of another slot, or of the base.
func (s *slots) handOn(from slot, schema *delta.Schema, lay lay) error {
	for _, r := range schema.States() {
		dir := filepath.Join(from.dir, r.Name)
		if from.name == "base" {
			dir = s.base.from[r.Name]
		}
		if err := s.layFrom(dir, r.Name, lay); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *slots) layFrom(dir, state string, lay lay) error {
	if err := eachSidecar(s.dir.FS(), dir, func(file string, b []byte) error { return lay(state, file, b) }); err != nil {
		return inState(state, err)
	}
	return nil
}

// fits returns the states of schema that have the tensors of the base, so that the files beside the base are theirs.
func (s *slots) fits(schema *delta.Schema) map[string]bool {
	fits := make(map[string]bool)
	for i, r := range schema.States() {
		if own, err := schema.StateSchema(i); err == nil && s.dressed[r.Name].Equals(own.ID()) {
			fits[r.Name] = true
		}
	}
	return fits
}

// misfit says what may be wrong beside the weights of a slot, nothing when all is well.
func (s *slots) misfit(sl slot) string {
	if len(s.misfits[sl.name]) == 0 {
		return ""
	}
	return inState(strings.Join(s.misfits[sl.name], ", "), errors.New("tensors other than those of the base came without a config: "+
		"the one beside them is that of the base and may not fit: publish with --full from a directory that holds theirs")).Error()
}

// dressFrom lays all that each hands out, and returns it by state. Of a state of which something is laid all others are
// removed. Where nothing is handed out, as when bare weights are published, what is there stays: somebody put it there.
func (s *slots) dressFrom(to slot, schema *delta.Schema, each func(lay) error) (laid map[string]map[string]bool, err error) {
	laid = make(map[string]map[string]bool)
	for _, r := range schema.States() {
		laid[r.Name] = make(map[string]bool)
	}
	err = each(func(state, file string, b []byte) error {
		if laid[state] == nil || !isSidecar(file) {
			return nil
		}
		laid[state][file] = true
		return writeChanged(s.place, path.Join("slots", to.name, state, file), b)
	})
	if err != nil {
		return laid, err
	}
	for state, ours := range laid {
		if len(ours) > 0 {
			err = errors.Join(err, removeOthers(s.place, path.Join("slots", to.name, state), func(file string) bool { return ours[file] }))
		}
	}
	return laid, err
}

// writeChanged writes a durable file, unless it has that content.
func writeChanged(dir *files.Dir, name string, b []byte) error {
	if now, err := dir.ReadFile(name); err == nil && bytes.Equal(now, b) {
		return nil
	}
	return dir.WriteDurable(name, b)
}

// removeOthers removes the sidecars of a directory that are not to stay. No crash brings them back: nothing could tell
// that one does not belong to the files around it, and an engine would load it.
func removeOthers(dir *files.Dir, in string, stay func(file string) bool) error {
	names, err := dir.List(in)
	var others []string
	for _, file := range names {
		if isSidecar(file) && !stay(file) {
			others = append(others, path.Join(in, file))
		}
	}
	return errors.Join(err, dir.RemoveDurable(others...))
}
