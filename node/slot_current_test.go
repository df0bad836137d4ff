package node

import (
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// Whichever call fails while the link current is switched, the node thinks of it as engines find it: one that was made
// and could not be synced is not taken back.
func TestTheLinkLeadsWhereTheNodeThinks(t *testing.T) {
	for nth := uint64(1); ; nth++ {
		armed := false
		broken := &faults.Failing{On: faults.NewDisk(time.Now).Mount(), Nth: nth, When: func(faults.Op) bool { return armed }}
		dir, err := files.Open(broken, "/data")
		try(t, err)
		s := &slots{dir: dir, place: dir, log: zerolog.Nop()}
		for i, name := range slotNames {
			s.own[i] = slot{name: name, dir: dir.Path("slots/" + name)}
		}
		try(t, s.point(s.own[0]))
		armed = true
		err = s.point(s.own[1])
		armed = false
		if switched := s.leadsTo(s.own[1]); s.isAstray() || switched != (err == nil) || switched != (s.busy == slotNames[1]) {
			t.Errorf("call %d: switched %t, astray %t, %v", nth, switched, s.isAstray(), err)
		}
		if broken.Picked() < nth {
			break // no call was left to fail
		}
	}
}
