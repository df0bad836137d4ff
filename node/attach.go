package node

import (
	"fmt"
	"io"
	"path"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// sidecarsDir is where a trainer keeps what lay beside the checkpoints published last, for its anchors.
const sidecarsDir = "sidecars"

// keepSidecars keeps what lies beside checkpoints that are directories. Weights that cannot be published for want of
// such a file would help nobody, so what goes wrong is told and no more. Bare weights leave what was there, if that
// belongs to the same tensors.
func (t *trainer) keepSidecars(from paths, same bool) {
	problem := ""
	for _, state := range from.names() {
		if err := t.keepBeside(state, from[state], same); err != nil {
			problem = fmt.Sprintf("newcomers may lack a file beside the weights: %v: mend it and publish again", inState(state, err))
		}
	}
	if t.board.note("sidecars", problem) && problem != "" {
		t.log.Warn().Msg(problem)
	}
}

func (t *trainer) keepBeside(state, dir string, same bool) error {
	kept := make(map[string]bool)
	err := eachSidecar(t.dir.FS(), dir, func(file string, b []byte) error {
		kept[file] = true
		return writeChanged(t.dir, path.Join(sidecarsDir, state, file), b)
	})
	if err != nil || same && len(kept) == 0 {
		return err
	}
	return removeOthers(t.dir, path.Join(sidecarsDir, state), func(file string) bool { return kept[file] })
}

// attachments are the files that travel with an anchor, open.
type attachments struct {
	list  []delta.Attachment
	open  []files.File
	bytes uint64
}

// attach opens what travels with an anchor: for each state what was kept of the last publish, or else what lies beside
// the base, if that has the same tensors: its config would be wrong for others. Close it in any case.
func (t *trainer) attach(c *states) (a attachments, err error) {
	for _, state := range c.names {
		dir := t.dir.Path(path.Join(sidecarsDir, state))
		if kept, err := t.dir.List(path.Join(sidecarsDir, state)); err != nil || len(kept) == 0 {
			if dir = t.base[state]; dir == "" || !t.baseSchema.Equals(c.Schema().ID()) {
				continue
			}
		}
		left, err := a.add(t.dir.FS(), state, dir)
		if err != nil {
			return a, fmt.Errorf("files beside the weights: %w", inState(state, err))
		}
		if len(left) > 0 {
			t.log.Warn().Strs("files", left).Msg("do not travel with full copies: too many files, too large, or odd names")
		}
	}
	return a, nil
}

// add attaches the files beside the weights of a state and tells which ones it left out.
func (a *attachments) add(fsys files.FS, state, dir string) (left []string, err error) {
	names, err := sidecarsIn(fsys, dir)
	for _, name := range names {
		f, size, err := openSidecar(fsys, dir, name)
		if err != nil {
			return left, fmt.Errorf("%s: %w", name, err)
		}
		if f == nil {
			continue
		}
		a.open = append(a.open, f)
		c := delta.Sidecar{Name: path.Join(state, name), Size: uint64(size)}
		if c.Validate() != nil || len(a.list) == delta.MaxSidecars || a.bytes+c.Size > delta.MaxSidecarBytes {
			left = append(left, c.Name)
			continue
		}
		a.bytes += c.Size
		a.list = append(a.list, delta.Attachment{Sidecar: c, Content: io.NewSectionReader(f, 0, size+1)}) // one more, to tell growth
	}
	return left, err
}

func (a *attachments) close() {
	for _, f := range a.open {
		f.Close()
	}
}
