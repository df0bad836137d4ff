package node

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
)

// Slots may lie elsewhere, and be lost with that place, as memory is by a reboot.
func TestSlotsElsewhere(t *testing.T) {
	steps := series(t, 4)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainerCfg.SlotsDir = filepath.Join(t.TempDir(), "trainer")
	trainer := startNode(t, trainerCfg)
	cfg := followerOf(t, trainer, id, steps[0])
	cfg.SlotsDir = filepath.Join(t.TempDir(), "memory", "slots of this node")
	rollout := startNode(t, cfg)
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
	for _, c := range []*Config{cfg, trainerCfg} {
		if _, err := os.Lstat(filepath.Join(c.Data, "slots")); !os.IsNotExist(err) {
			t.Errorf("there are slots in data, too: %v", err)
		}
	}
	if got := rollout.Status(t.Context()).Path; !strings.HasPrefix(got, cfg.SlotsDir) {
		t.Errorf("serves from %s", got)
	}
	rollout.stop()
	try(t, os.RemoveAll(cfg.SlotsDir))
	rollout = startNode(t, cfg)
	rollout.mustPull(t, 2, steps[2])
	rollout.mustPull(t, trainer.mustPublish(t, steps[3]).Number, steps[3])
}

// Slots that move elsewhere leave no copies behind, and nothing of them is lost before there are others.
func TestSlotsMoveElsewhere(t *testing.T) {
	steps := series(t, 3)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	cfg := followerOf(t, trainer, id, steps[0])
	rollout := startNode(t, cfg)
	rollout.mustPull(t, trainer.mustPublish(t, steps[1]).Number, steps[1])
	rollout.stop()
	trainer.stop()
	trainerCfg.SlotsDir, cfg.SlotsDir = filepath.Join(t.TempDir(), "trainer"), filepath.Join(t.TempDir(), "rollout")
	trainer = startNode(t, trainerCfg)
	rollout = startNode(t, relocate(t, cfg, trainer))
	rollout.mustServe(t, 1, steps[1])
	rollout.mustPull(t, trainer.mustPublish(t, steps[2]).Number, steps[2])
	for _, c := range []*Config{cfg, trainerCfg} {
		if _, err := os.Lstat(filepath.Join(c.Data, "slots")); !os.IsNotExist(err) {
			t.Errorf("the slots of before are still in data: %v", err)
		}
	}
}

func TestSlotsDirIsOnesOwn(t *testing.T) {
	steps := series(t, 1)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"others can enter": {func(p string) error { return os.Mkdir(p, 0o755) }, "chmod 700"},
		"symlink":          {func(p string) error { return os.Symlink(dir, p) }, "symlink"},
		"file":             {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "slots_dir"},
	} {
		cfg, _ := newConfig(t, mesh.RoleTrainer, steps[0])
		cfg.SlotsDir = filepath.Join(dir, name)
		try(t, c.make(cfg.SlotsDir))
		if n, err := New(cfg, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			_ = n.Close()
		}
	}
	cfg, _ := newConfig(t, mesh.RoleTrainer, steps[0])
	cfg.SlotsDir = filepath.Join(cfg.Data, "there")
	if _, err := New(cfg, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "in one another") {
		t.Errorf("in data: %v", err)
	}
	first, _ := newConfig(t, mesh.RoleTrainer, steps[0])
	second, _ := newConfig(t, mesh.RoleTrainer, steps[0])
	first.SlotsDir, second.SlotsDir = filepath.Join(dir, "shared"), filepath.Join(dir, "shared")
	startNode(t, first)
	if _, err := New(second, zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "set slots_dir: to another") {
		t.Errorf("shared: %v", err)
	}
}

func TestFullPlaceIsExplained(t *testing.T) {
	place, err := files.OpenPrivate(files.OS{}, filepath.Join(t.TempDir(), "slots"), "slots_dir")
	try(t, err)
	s := &slots{dir: &files.Dir{}, place: place}
	if err := s.explain(&os.PathError{Op: "write", Path: "/dev/shm/x", Err: syscall.ENOSPC}); !strings.Contains(err.Error(), "slots_dir") {
		t.Errorf("%v does not tell what to do", err)
	}
}
