package node

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// home is where a node keeps what belongs to a run.
type home struct {
	dir   *files.Dir // durable things, and the link current
	one   bool       // only one slot
	place *files.Dir // the slots, which are caches; dir unless slots_dir is set
	base  paths      // of the base checkpoint, none without one
	cut   delta.Cutting
}

// openHome takes the data directory, and that of the slots where it is another one. Two nodes never share either.
func (n *Node) openHome() (err error) {
	if n.dir, err = files.Open(n.machine.FS, n.cfg.Data); err != nil {
		return err
	}
	n.place = n.dir
	if err := n.lock(n.dir); err != nil || n.cfg.SlotsDir == "" {
		return err
	}
	if n.place, err = files.OpenPrivate(n.machine.FS, n.cfg.SlotsDir, "slots_dir"); err != nil {
		return err
	}
	if n.place.Inside(n.dir) {
		return fmt.Errorf("slots_dir: %s and data: %s lie in one another: leave slots_dir out to keep slots in data", n.cfg.SlotsDir, n.cfg.Data)
	}
	return n.lock(n.place)
}

func (n *Node) lock(dir *files.Dir) error {
	unlock, err := dir.Lock()
	if err == nil {
		n.onClose(func() error { unlock(); return nil })
	}
	return err
}

// homeOf opens the home of one of several runs.
func (n *Node) homeOf(run RunConfig) (h home, err error) {
	h.base, h.cut = run.basePaths(), run.cutting()
	below := path.Join("runs", run.Name)
	if h.dir, err = n.dir.Sub(below); err != nil {
		return home{}, err
	}
	h.place = h.dir
	if n.cfg.SlotsDir != "" {
		h.place, err = n.place.Sub(below)
	}
	return h, err
}

// explain adds to an error about a slot what a user can do.
func (s *slots) explain(err error) error { return s.place.Explain(err) }

// clearFormer removes what lies where slots were before slots_dir was set, once a copy lies there: nothing leads back.
func (s *slots) clearFormer() {
	former := s.dir.Path("slots")
	if s.place == s.dir {
		return
	}
	if _, err := s.dir.FS().Lstat(former); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := s.dir.FS().RemoveAll(former); err != nil {
		s.log.Warn().Err(s.dir.Explain(err)).Msg("copies of the weights from before slots_dir was set could not be removed")
		return
	}
	s.log.Info().Str("path", former).Msg("removed copies of the weights from before slots_dir was set")
}
