package node

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/rs/zerolog"
)

// room tells when the disk is too small for the copies of the weights that are still to come. Each is made by a version
// of its own, so a run may go well for a while before the first write fails.
type room struct {
	board *board
	log   zerolog.Logger
	told  string
}

// look tells what has changed since the last look.
func (r *room) look(s *slots) {
	text := s.short()
	if text == r.told {
		return // nobody who waits for news is woken
	}
	if r.told == "" {
		r.log.Warn().Msg(text)
	}
	r.told = text
	r.board.note("room", text)
}

// short says by how much the disk is too small, nothing where it is not or that cannot be told.
func (s *slots) short() string {
	free, err := s.place.Free()
	if err != nil {
		return ""
	}
	if need := s.toCome(); need > free {
		return fmt.Sprintf("the copies of the weights still to come take %s, and %s has %s free: %s",
			humanize.Bytes(need), s.place.Path("."), humanize.Bytes(free), s.place.MakeRoom())
	}
	return ""
}

// toCome returns how many bytes the copies take that are not made yet, beyond what lies in their place; 0 while nothing
// is here that tells how large one is.
func (s *slots) toCome() (need uint64) {
	all, changes := s.all()
	if len(all) == 0 {
		return 0
	}
	size := stampSize(s.looked(all[0], changes[0]))
	for _, sl := range s.vacant() {
		need += size - min(size, s.bytesIn(sl))
	}
	return need
}

// vacant returns the slots of our own that hold nothing.
func (s *slots) vacant() (list []slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sl := range s.own {
		if sl.root.IsZero() && (s.only == "" || s.only == sl.name) {
			list = append(list, sl)
		}
	}
	return list
}

// bytesIn returns how many bytes of weights lie in a slot: some that are being written, or that go before.
func (s *slots) bytesIn(sl slot) (sum uint64) {
	dirs, err := s.places(sl)
	if err != nil {
		return 0
	}
	for _, dir := range dirs {
		for _, name := range weightsNames {
			for _, ending := range []string{"", draftSuffix} {
				if info, err := s.dir.FS().Lstat(filepath.Join(dir, name+ending)); err == nil {
					sum += uint64(info.Size())
				}
			}
		}
	}
	return sum
}

// stampSize returns how many bytes the files of a stamp have.
func stampSize(stamp string) (sum uint64) {
	for line := range strings.Lines(stamp) {
		_, size := cutStamp(line)
		n, err := strconv.ParseUint(size, 10, 64)
		if err != nil {
			return 0
		}
		sum += n
	}
	return sum
}
