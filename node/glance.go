package node

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/sparsecast/sparsecast/node/files"
)

// glanceEvery is how often a node looks whether the slots and the link current are still there.
const glanceEvery = 5 * time.Second

// appearance is what the files of a slot looked like when they were last known to be whole.
type appearance struct {
	change int    // of the slot, as in slots.changes
	stamp  string // empty when that is not known
}

// lookout notices what others do to the files of a node without reading them, as when memory is cleared that held slots.
type lookout struct {
	slots *slots
	nudge func() // called when something looks wrong
	room  *room
}

func (l lookout) run(ctx context.Context) {
	tick := time.NewTicker(glanceEvery)
	defer tick.Stop()
	for {
		l.room.look(l.slots)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !l.slots.isHarmed() && !l.slots.atWork() && (len(l.slots.odd()) > 0 || l.slots.isAstray()) {
			l.nudge()
		}
	}
}

// odd returns the slots whose files are not as they were. Those of the base are somebody's, perhaps on a disk that is away
// for a moment: it matters that others lie there where it is served.
func (s *slots) odd() (list []slot) {
	all, changes := s.all()
	for i, sl := range all {
		base := sl.name == "base"
		if base && !s.isServed(sl) {
			continue
		}
		want := s.looked(sl, changes[i])
		now, ok := stampAgain(s.dir.FS(), want)
		if !ok || now == want || !s.unchanged(sl, changes[i]) {
			continue
		}
		if gone := strings.Count(now, "\n") < strings.Count(want, "\n"); !base || !gone {
			list = append(list, sl)
		}
	}
	return list
}

// glance examines the slots that look odd. Only who may write to slots calls it.
func (s *slots) glance(ctx context.Context) {
	for _, sl := range s.odd() {
		if s.recheck(ctx, sl) != nil {
			continue // reported
		}
		s.mu.Lock()
		a := s.looks[sl.name]
		a.stamp, _ = stampAgain(s.dir.FS(), a.stamp)
		s.looks[sl.name] = a
		s.mu.Unlock()
	}
}

// looked returns what the files of a slot looked like, which at first is what its marker says.
func (s *slots) looked(sl slot, change int) string {
	s.mu.Lock()
	a, ok := s.looks[sl.name]
	s.mu.Unlock()
	if ok && a.change == change {
		return a.stamp
	}
	m, err := s.readMarker(sl.name)
	if err != nil || m.Root != sl.root {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks[sl.name] = appearance{change, m.Files}
	return m.Files
}

// present tells whether the slot in dir is vouched for, and has the files that it had, of the same sizes. What lies
// elsewhere is not ours.
func (s *slots) present(dir string) bool {
	if dir != s.own[0].dir && dir != s.own[1].dir {
		return true
	}
	all, changes := s.all()
	for i, sl := range all {
		if sl.dir == dir {
			return samePlaces(s.dir.FS(), s.looked(sl, changes[i]))
		}
	}
	return false // its loss is noticed, but not yet seen to
}

// isAstray tells whether the link current does not lead where it was pointed.
func (s *slots) isAstray() bool {
	s.mu.Lock()
	sl := s.shown
	s.mu.Unlock()
	return sl.dir != "" && !s.leadsTo(sl)
}

// repoint makes the link current again when somebody removed or changed it.
func (s *slots) repoint() error {
	if !s.isAstray() {
		return nil
	}
	s.log.Warn().Msg("the link current did not lead to what is served any more: making it again")
	return s.point(s.shown)
}

// stampAgain is fileStamp of the files that a stamp names; those that are gone are left out. Not ok means that this
// cannot be told now.
func stampAgain(fsys files.FS, stamp string) (now string, ok bool) {
	var there []string
	for line := range strings.Lines(stamp) {
		path, _ := cutStamp(line)
		_, err := fsys.Stat(path)
		switch {
		case err == nil:
			there = append(there, path)
		case !errors.Is(err, fs.ErrNotExist):
			return "", false
		}
	}
	now, err := fileStamp(fsys, there)
	return now, err == nil
}

// samePlaces tells whether the files of a stamp are there in their sizes.
func samePlaces(fsys files.FS, stamp string) bool {
	for line := range strings.Lines(stamp) {
		path, size := cutStamp(line)
		if info, err := fsys.Stat(path); err != nil || strconv.FormatInt(info.Size(), 10) != size {
			return false
		}
	}
	return true
}

// cutStamp takes a line of a fileStamp apart.
func cutStamp(line string) (path, size string) {
	rest := line
	if i := strings.LastIndexByte(rest, ' '); i > 0 { // before the time
		rest = rest[:i]
	}
	if i := strings.LastIndexByte(rest, ' '); i > 0 {
		return rest[:i], rest[i+1:]
	}
	return rest, ""
}
