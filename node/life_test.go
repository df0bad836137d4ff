package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta/safetensors"
	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/api"
)

func TestSeries(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	rollout.mustPull(t, 0, steps[0])
	for i, path := range steps[1:] {
		r := trainer.mustPublish(t, path)
		if r.Number != uint64(i+1) || r.Changed == 0 || r.Coded == 0 || r.Coded > r.Dense/10 {
			t.Errorf("publish %d: %+v", i+1, r)
		}
		rollout.mustPull(t, r.Number, path)
	}
	s := rollout.Status(t.Context())
	if s.State != api.StateReady || s.Served.Number != 3 || s.Latest.Number != 3 || len(s.History) != 4 {
		t.Errorf("status %+v", s)
	}
}

// What changes nothing is a version all the same, and moves no bytes.
func TestNothingChanged(t *testing.T) {
	steps := series(t, 2)
	trainer, rollout := pairUp(t, steps[0])
	trainer.mustPublish(t, steps[1])
	r := trainer.mustPublish(t, steps[1])
	if r.Number != 2 || r.Changed != 0 || r.Coded != 0 {
		t.Errorf("publish: %+v", r)
	}
	rollout.mustPull(t, 2, steps[1])
	back := trainer.mustPublish(t, steps[0])
	rollout.mustPull(t, back.Number, steps[0])
}

func TestNumbersOnlyGrow(t *testing.T) {
	steps := series(t, 3)
	trainer, _ := pairUp(t, steps[0])
	five := uint64(5)
	if _, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[1], Number: &five}); err != nil {
		t.Fatal(err)
	}
	_, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[2], Number: &five})
	var e *api.Error
	if !errors.As(err, &e) || e.Hint == "" || !strings.Contains(err.Error(), "5") {
		t.Errorf("publishing 5 twice gave %v", err)
	}
	if r := trainer.mustPublish(t, steps[2]); r.Number != 6 {
		t.Errorf("published %d, want 6", r.Number)
	}
}

func TestSchemaChangeSendsAnAnchor(t *testing.T) {
	steps := series(t, 2)
	trainer, rollout := pairUp(t, steps[0])
	trainer.mustPublish(t, steps[1])
	other := filepath.Join(t.TempDir(), "other.safetensors")
	writeCheckpoint(t, other, []safetensors.Tensor{
		{Name: "w", DType: "F16", Shape: []uint64{3}, Size: 6}, {Name: "new", DType: "I8", Shape: []uint64{2}, Size: 2},
	}, []byte{1, 2, 3, 4, 5, 6}, []byte{7, 8})
	r := trainer.mustPublish(t, other)
	rollout.mustPull(t, r.Number, other)
	r = trainer.mustPublish(t, steps[0])
	rollout.mustPull(t, r.Number, steps[0])
}

func TestPublishWithoutBase(t *testing.T) {
	steps := series(t, 2)
	cfg, id := newConfig(t, mesh.RoleTrainer, "")
	trainer := startNode(t, cfg)
	rollout := startNode(t, followerOf(t, trainer, id, ""))
	for i, path := range steps {
		r := trainer.mustPublish(t, path)
		if full := r.Changed == r.Elements; full != (i == 0) {
			t.Errorf("publish %d: %d of %d elements", r.Number, r.Changed, r.Elements)
		}
		rollout.mustPull(t, r.Number, path)
	}
}

func TestRestartGoesOn(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	first := trainer.mustPublish(t, steps[1])
	rollout.mustPull(t, 1, steps[1])

	trainer.stop()
	rollout.stop()
	rollout = startNode(t, rollout.cfg)
	if s := rollout.waitFor(t, "the served version", func(s api.Status) bool { return s.Served != nil }); s.Served.Number != 1 {
		t.Errorf("serves %d after a restart, want 1", s.Served.Number)
	}
	rollout.stop()

	trainer = startNode(t, trainer.cfg)
	trainer.waitFor(t, "the published version", func(s api.Status) bool { return s.State == api.StateReady })
	rollout = startNode(t, relocate(t, rollout.cfg, trainer))
	r := trainer.mustPublish(t, steps[2])
	if r.Changed == r.Elements || r.Epoch <= first.Epoch || r.Number != 2 {
		t.Errorf("after a restart of the trainer: %+v, want a delta in a new epoch", r)
	}
	rollout.mustPull(t, 2, steps[2])
}

// A bit that flips in a slot must be found before it is served, and must not stop the node.
func TestDamagedSlotIsReplaced(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	trainer.mustPublish(t, steps[1])
	rollout.mustPull(t, 1, steps[1])
	damage(t, filepath.Join(rollout.Status(t.Context()).Path, weightsFile))
	r := trainer.mustPublish(t, steps[2])
	rollout.mustPull(t, r.Number, steps[2]) // from the base, over both deltas
}

// After a crash of the machine a slot may hold anything; the trainer makes the version published last anew, and goes on
// with a delta. The rollout takes nothing for granted either.
func TestLostSlotsAreMadeAnew(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	for _, path := range steps[1:3] {
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
	}
	rollout.stop()
	trainer.stop()
	for _, dir := range []string{trainer.cfg.Data, rollout.cfg.Data} {
		for _, name := range slotNames {
			path := filepath.Join(dir, "slots", name, weightsFile)
			damage(t, path)
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(markerFile(name)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	trainer = startNode(t, trainer.cfg)
	rollout = startNode(t, relocate(t, rollout.cfg, trainer))
	rollout.mustPull(t, 2, steps[2])
	r := trainer.mustPublish(t, steps[3])
	if r.Changed == r.Elements {
		t.Error("the trainer sent a full copy")
	}
	rollout.mustPull(t, r.Number, steps[3])
}

func TestDamagedCopyAtTheTrainer(t *testing.T) {
	steps := series(t, 4)
	trainer, rollout := pairUp(t, steps[0])
	trainer.mustPublish(t, steps[1])
	damage(t, filepath.Join(trainer.Status(t.Context()).Path, weightsFile))
	if _, err := trainer.Publish(t.Context(), api.PublishRequest{Path: steps[2]}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("a delta against a damaged copy gave %v", err)
	}
	r := trainer.mustPublish(t, steps[2])
	rollout.mustPull(t, r.Number, steps[2])
}

func TestOldBlocksGo(t *testing.T) {
	steps := series(t, 24)
	cfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	cfg.Keep, cfg.Reverse = 2, 2
	trainer := startNode(t, cfg)
	rollout := startNode(t, followerOf(t, trainer, id, steps[0]))
	for i, path := range append(steps[1:], steps[len(steps)-1]) { // nothing leaves the offer with the last
		rollout.mustPull(t, trainer.mustPublish(t, path).Number, path)
		if i == len(steps)-2 {
			trainer.settle(t)
		}
	}
	trainer.settle(t)
	for _, n := range []*testNode{trainer, rollout} {
		n.waitFor(t, "old blocks to go", func(api.Status) bool {
			head, catalogue, _, _ := n.run.Latest()
			edges := offered(head, catalogue)
			if len(edges) > 2+2+spare+4 { // deltas, edges back, shortcuts, and what else leads from the base
				return false
			}
			want := make(map[cid.Cid]bool)
			for _, e := range edges {
				try(t, libraryOf(n).need(want, e.Manifest))
			}
			all, err := libraryOf(n).store.List()
			try(t, err)
			return !slices.ContainsFunc(all, func(id cid.Cid) bool { return !want[id] })
		})
	}
}

func libraryOf(n *testNode) library {
	if r, ok := n.role.(*rollout); ok {
		return r.library
	}
	return n.role.(*trainer).library
}

func TestSidecarsComeWithTheWeights(t *testing.T) {
	steps := series(t, 2)
	base := t.TempDir()
	for name, content := range map[string]string{"config.json": "{}", "tokenizer.json": "[]", "old.bin": "no"} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(steps[0], filepath.Join(base, weightsFile)); err != nil {
		t.Fatal(err)
	}
	trainer, rollout := pairUp(t, base)
	r := trainer.mustPublish(t, steps[1])
	rollout.mustPull(t, r.Number, steps[1])
	names, err := os.ReadDir(rollout.Status(t.Context()).Path)
	if err != nil || len(names) != 3 {
		t.Errorf("the slot holds %v (%v), want config, tokenizer and weights", names, err)
	}
}

func TestRelayPassesOn(t *testing.T) {
	steps := series(t, 2)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	relayCfg := followerOf(t, trainer, id, "")
	relayCfg.Role = mesh.RoleRelay
	relay := startNode(t, relayCfg)
	r := trainer.mustPublish(t, steps[1])
	relay.waitFor(t, "the relay to hold it", func(s api.Status) bool { return s.Served != nil && s.Served.Number == r.Number })
	trainer.stop()
	rollout := startNode(t, followerOf(t, relay, id, steps[0]))
	rollout.mustPull(t, r.Number, steps[1])
	if sent := relay.Status(t.Context()).SentBytes["rollout"]; sent < r.Coded {
		t.Errorf("the relay sent %d bytes, the code has %d", sent, r.Coded)
	}
	if _, err := relay.Pull(t.Context(), api.PullRequest{}); err == nil {
		t.Error("a relay let itself be pulled from")
	}
}

// publishers is checked by the mesh; here it must reach it.
func TestAnotherPublisherIsNotFollowed(t *testing.T) {
	steps := series(t, 2)
	trainerCfg, _ := newConfig(t, mesh.RoleTrainer, steps[0])
	trainer := startNode(t, trainerCfg)
	_, stranger := newConfig(t, mesh.RoleTrainer, "")
	rollout := startNode(t, followerOf(t, trainer, stranger, steps[0]))
	s := rollout.waitFor(t, "a refusal", func(s api.Status) bool { return s.Counters["heads_forged"] > 0 && len(s.Problems) > 0 })
	if s.Latest != nil {
		t.Errorf("follows %+v", s.Latest)
	}
	if all := strings.Join(s.Problems, "\n"); !strings.Contains(all, "publishers") {
		t.Errorf("status does not tell what to do: %q", all)
	}
}

func TestBadPublishLeavesEverything(t *testing.T) {
	steps := series(t, 3)
	trainer, rollout := pairUp(t, steps[0])
	trainer.mustPublish(t, steps[1])
	half := t.TempDir()
	index := `{"weight_map": {"w": "model-00001-of-00002.safetensors", "v": "model-00002-of-00002.safetensors"}}`
	if err := os.WriteFile(filepath.Join(half, "model.safetensors.index.json"), []byte(index), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{half, t.TempDir(), filepath.Join(half, "nothing"), os.DevNull} {
		_, err := trainer.Publish(t.Context(), api.PublishRequest{Path: path})
		var e *api.Error
		if !errors.As(err, &e) || e.Hint == "" || !strings.Contains(err.Error(), "nothing published") {
			t.Errorf("publish %s: %v", path, err)
		}
	}
	rollout.mustPull(t, 1, steps[1])
	r := trainer.mustPublish(t, steps[2])
	rollout.mustPull(t, r.Number, steps[2])
}

func TestTwoNodesNeverShareData(t *testing.T) {
	steps := series(t, 1)
	cfg, _ := newConfig(t, mesh.RoleTrainer, steps[0])
	startNode(t, cfg)
	_, err := New(cfg, zerolog.Nop())
	if err == nil || !strings.Contains(err.Error(), cfg.Data) {
		t.Errorf("a second node in %s gave %v", cfg.Data, err)
	}
}

// Hosts join and leave while a node runs: its lists are reread.
func TestListsAreReread(t *testing.T) {
	steps := series(t, 2)
	trainerCfg, id := newConfig(t, mesh.RoleTrainer, steps[0])
	trainerCfg.Peers = filepath.Join(filepath.Dir(trainerCfg.Key), "peers.txt")
	rewrite := func(ids ...peer.ID) {
		var list strings.Builder
		for _, id := range ids {
			list.WriteString(id.String() + "\n")
		}
		if err := os.WriteFile(trainerCfg.Peers, []byte(list.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(id)
	trainer := startNode(t, trainerCfg)
	rolloutCfg := followerOf(t, trainer, id, steps[0])
	rollout := startNode(t, rolloutCfg)
	trainer.waitFor(t, "a refusal", func(s api.Status) bool { return s.Counters["peers_refused"] > 0 })
	key, err := LoadKey(rolloutCfg.Key)
	if err != nil {
		t.Fatal(err)
	}
	member, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(id, member)
	r := trainer.mustPublish(t, steps[1])
	rollout.mustPull(t, r.Number, steps[1])
	if err := os.WriteFile(trainerCfg.Peers, []byte("no peer ID\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rewrite(id)
	trainer.waitFor(t, "the peer to be cut off", func(s api.Status) bool { return len(s.Peers) == 0 })
}
