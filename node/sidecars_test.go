package node

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// What lies beside the weights and is no file to copy is passed over: a pipe would be waited for, a device never ends.
func TestOddSidecarsArePassedOver(t *testing.T) {
	base := t.TempDir()
	in := func(name string) string { return filepath.Join(base, name) }
	try(t, os.Rename(series(t, 1)[0], in(weightsFile)))
	try(t, os.WriteFile(in("blob"), []byte("{}"), 0o600))
	try(t, os.WriteFile(in("huge.txt"), nil, 0o600))
	try(t, os.Truncate(in("huge.txt"), files.MaxFile+1))
	try(t, os.WriteFile(in(`back\slash`), nil, 0o600))
	try(t, os.Mkdir(in("onnx"), 0o700))
	try(t, syscall.Mkfifo(in("pipe.json"), 0o600))
	for name, target := range map[string]string{
		"config.json": "blob", "gone.json": "nothing", "zero.json": "/dev/zero", "linked.json": "pipe.json", "dir": "onnx",
	} {
		try(t, os.Symlink(target, in(name)))
	}
	dir, err := files.Open(files.OS{}, t.TempDir())
	try(t, err)
	_, err = openSlots(t.Context(), home{dir: dir, place: dir, base: paths{"": base}}, zerolog.Nop())
	try(t, err)
	for _, slot := range slotNames {
		names, err := dir.List("slots/" + slot)
		if err != nil || len(names) != 2 || names[0] != "blob" || names[1] != "config.json" {
			t.Errorf("slot %s holds %v, %v, want blob and config.json", slot, names, err)
		}
		if info, err := os.Lstat(dir.Path("slots/" + slot + "/config.json")); err != nil || !info.Mode().IsRegular() {
			t.Errorf("slot %s: config.json is %v, %v", slot, info.Mode(), err)
		}
	}
}

// No loss of power brings back a file that was removed from beside the weights.
func TestRemovedSidecarsStayAway(t *testing.T) {
	for seed := range uint64(20) {
		disk := faults.NewDisk(time.Now)
		dir, err := files.Open(disk.Mount(), "/data")
		try(t, err)
		for _, name := range []string{"slots/a/config.json", "slots/a/old.json"} {
			try(t, dir.WriteDurable(name, []byte("{}")))
		}
		try(t, removeOthers(dir, "slots/a", func(file string) bool { return file == "config.json" }))
		disk.PowerLoss(rand.New(rand.NewPCG(seed, 0)))
		dir, err = files.Open(disk.Mount(), "/data")
		try(t, err)
		if names, err := dir.List("slots/a"); err != nil || !slices.Equal(names, []string{"config.json"}) {
			t.Errorf("power lost (%d): found %v, %v, want config.json alone", seed, names, err)
		}
	}
}

// A sidecar that cannot be read is named: an engine would miss it.
func TestUnreadableSidecarIsNamed(t *testing.T) {
	disk := faults.NewDisk(time.Now)
	weights, err := os.ReadFile(series(t, 1)[0])
	try(t, err)
	try(t, disk.WriteFile("/base/"+weightsFile, weights, 0o600))
	try(t, disk.WriteFile("/base/config.json", []byte("{}"), 0o600))
	broken := &faults.Failing{
		On: disk.Mount(), When: func(op faults.Op) bool { return op.Call == "read" && op.Path == "/base/config.json" }, Nth: 1, Forever: true,
	}
	dir, err := files.Open(broken, "/data")
	try(t, err)
	s, err := openSlots(t.Context(), home{dir: dir, place: dir, base: paths{"": "/base"}}, zerolog.Nop())
	try(t, err) // the weights are there
	if err := s.copySidecars(); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("got %v", err)
	}
}
