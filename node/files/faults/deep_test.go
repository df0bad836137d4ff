package faults_test

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/node/files"
	"github.com/sparsecast/sparsecast/node/files/faults"
)

// A data directory far below what was there outlives a loss of power, even when the process that made it died at once
// and another one opened it.
func TestDeepDirOutlivesLossOfPower(t *testing.T) {
	for seed := range uint64(20) {
		disk := faults.NewDisk(time.Now)
		first := disk.Mount()
		first.OnCall = func(op faults.Op) error {
			if op.Call == "syncdir" {
				return faults.ErrKilled
			}
			return nil
		}
		if _, err := files.Open(first, "/srv/models/runs/data"); err == nil {
			t.Fatal("opened, though nothing could be synced")
		}
		d, err := files.Open(disk.Mount(), "/srv/models/runs/data")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.WriteDurable("note", []byte("kept")); err != nil {
			t.Fatal(err)
		}
		disk.PowerLoss(rand.New(rand.NewPCG(seed, 1)))
		if b, err := disk.ReadFile("/srv/models/runs/data/note"); err != nil || string(b) != "kept" {
			t.Fatalf("seed %d: after a loss of power: %q, %v", seed, b, err)
		}
	}
}

// Automounters know no sync of a directory, and others forbid to read one: what we cannot make there is no reason not to
// start. A disk that fails is.
func TestOpenBelowForeignDirectories(t *testing.T) {
	for cause, fine := range map[error]bool{syscall.EINVAL: true, syscall.ENOTSUP: true, syscall.EACCES: true, syscall.EIO: false} {
		disk := faults.NewDisk(time.Now)
		m := disk.Mount()
		m.OnCall = func(op faults.Op) error {
			if op.Call == "syncdir" && op.Path == "/net" {
				return cause
			}
			return nil
		}
		if _, err := files.Open(m, "/net/host/data"); (err == nil) != fine || !fine && !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, err)
		}
	}
}
