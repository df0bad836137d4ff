package node

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// A slot that cannot be read for a while is as good as before; one that cannot be read again and again is lost.
func TestUnreadableSlot(t *testing.T) {
	disk := faults.NewDisk(time.Now)
	weights, err := os.ReadFile(series(t, 1)[0])
	try(t, err)
	try(t, disk.WriteFile("/base/"+weightsFile, weights, 0o600))
	failing := false
	m := disk.Mount()
	m.OnCall = func(op faults.Op) error {
		if failing && op.Call == "read" && op.Path == "/base/"+weightsFile {
			return syscall.EIO
		}
		return nil
	}
	dir, err := files.Open(m, "/data")
	try(t, err)
	s, err := openSlots(t.Context(), home{dir: dir, place: dir, base: paths{"": "/base"}}, zerolog.Nop())
	try(t, err)
	checked := func() int {
		list, err := s.check(t.Context(), func() func(uint64) { return nil })
		try(t, err)
		if len(list) > 0 && list[0].Damaged {
			t.Fatalf("checked %+v", list)
		}
		return len(list)
	}
	for range 3 {
		failing = true
		for range unreadable - 2 {
			if err := s.examine(t.Context(), s.base); !errors.Is(err, syscall.EIO) || errors.Is(err, errSlotLost) {
				t.Fatalf("got %v", err)
			}
		}
		if n := checked(); n != 0 || s.isHarmed() {
			t.Fatalf("%d slots are said to be whole or damaged", n)
		}
		failing = false
		if n := checked(); n != 1 {
			t.Fatalf("%d slots are said to be whole", n)
		}
	}
	failing = true
	for range unreadable - 1 {
		err = s.examine(t.Context(), s.base)
	}
	if again := s.examine(t.Context(), s.base); errors.Is(err, errSlotLost) || !errors.Is(again, errSlotLost) || !s.isHarmed() {
		t.Errorf("got %v and then %v", err, again)
	}
}
