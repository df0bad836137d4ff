package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDemo runs the demo as a newcomer does, and reads what it wrote for scripts.
func TestDemo(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out.json")
	text, err := exec.CommandContext(t.Context(), "sparsecast", "demo", "--size", "4MB", "--updates", "3", "--rollouts", "3", "--json", out).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	wantText(t, string(text), "every rollout's tensors equal the trainer's by SHA-256, after every update")
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	// Pointers tell what is absent from what is zero.
	var r struct {
		Versions []struct {
			Number   *uint64 `json:"number"`
			Changed  *uint64 `json:"changed"`
			Elements *uint64 `json:"elements"`
			Coded    *uint64 `json:"coded_bytes"`
			Ready    struct {
				First  *int64 `json:"first"`
				Median *int64 `json:"median"`
				Last   *int64 `json:"last"`
			} `json:"ready_ms"`
		} `json:"versions"`
		TrainerSent *uint64 `json:"trainer_sent_bytes"`
		PeerSent    *uint64 `json:"peer_sent_bytes"`
		Identical   bool    `json:"identical"`
	}
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if !r.Identical || len(r.Versions) != 3 || r.TrainerSent == nil || r.PeerSent == nil {
		t.Fatalf("want three identical versions and what was sent:\n%s", b)
	}
	var coded uint64
	for i, v := range r.Versions {
		if v.Number == nil || v.Changed == nil || v.Elements == nil || v.Coded == nil ||
			v.Ready.First == nil || v.Ready.Median == nil || v.Ready.Last == nil {
			t.Fatalf("version %d lacks a field:\n%s", i+1, b)
		}
		if *v.Number != uint64(i+1) || *v.Changed == 0 || *v.Changed > *v.Elements || *v.Coded == 0 {
			t.Errorf("version %d makes no sense:\n%s", i+1, b)
		}
		if *v.Ready.First > *v.Ready.Median || *v.Ready.Median > *v.Ready.Last {
			t.Errorf("version %d: ready times out of order:\n%s", i+1, b)
		}
		coded += *v.Coded
	}
	if *r.TrainerSent < coded || float64(*r.TrainerSent) > 1.6*float64(coded) {
		t.Errorf("the trainer sent %d bytes of %d, want each about once", *r.TrainerSent, coded)
	}
	if *r.PeerSent == 0 {
		t.Error("rollouts sent each other nothing")
	}
}

// TestDemoRefusesAnOldDirectory keeps one demo from being mistaken for another.
func TestDemoRefusesAnOldDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "trainer"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trainer", "node.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := exec.CommandContext(t.Context(), "sparsecast", "demo", "--size", "1MB", "--dir", dir).CombinedOutput()
	if err == nil {
		t.Error("the demo ran in a directory that holds another")
	}
	wantText(t, string(text), "holds an earlier demo: remove it or name another directory")
}
