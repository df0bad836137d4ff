package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/dustin/go-humanize"
)

// report is the result of a demo, as it is printed and written as JSON.
type report struct {
	Rollouts    int             `json:"rollouts"`
	Versions    []versionReport `json:"versions"`
	TrainerSent uint64          `json:"trainer_sent_bytes"` // bytes of blocks that the trainer sent to rollouts
	PeerSent    uint64          `json:"peer_sent_bytes"`    // bytes of blocks that rollouts sent to each other
	PeakMemory  uint64          `json:"peak_memory_bytes"`  // largest resident size of any node
	Identical   bool            `json:"identical"`          // after every update, by SHA-256
}

// versionReport is one row of the table.
type versionReport struct {
	Number    uint64     `json:"number"`
	Changed   uint64     `json:"changed"`
	Elements  uint64     `json:"elements"`
	Dense     uint64     `json:"dense_bytes"`
	Coded     uint64     `json:"coded_bytes"`
	Ready     readyTimes `json:"ready_ms"`
	Identical bool       `json:"identical"`
}

// readyTimes are milliseconds from publish to ready.
type readyTimes struct {
	First  int64 `json:"first"`
	Median int64 `json:"median"`
	Last   int64 `json:"last"`
}

func (r *report) header() {
	fmt.Printf("\n%7s %10s %8s %10s %9s %9s   %s\n", "version", "changed", "density", "coded", "B/change", "smaller",
		"ready after ms (first/median/last)  SHA-256")
}

func (r *report) add(v versionReport) {
	r.Versions = append(r.Versions, v)
	r.Identical = r.Identical && v.Identical
	same := "all equal"
	if !v.Identical {
		same = "DIFFERENT"
	}
	fmt.Printf("%7d %10d %7.3f%% %10s %9.3f %8.1fx   %-35s  %s\n", v.Number, v.Changed, 100*ratio(v.Changed, v.Elements),
		humanize.Bytes(v.Coded), ratio(v.Coded, v.Changed), ratio(v.Dense, v.Coded),
		fmt.Sprintf("%d / %d / %d", v.Ready.First, v.Ready.Median, v.Ready.Last), same)
}

// account asks the nodes what they sent.
func (r *report) account(ctx context.Context, f *fleet) error {
	for _, p := range f.all() {
		s, err := p.client.Status(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		for _, n := range s.SentBytes {
			if p == f.trainer {
				r.TrainerSent += n
			} else {
				r.PeerSent += n
			}
		}
		r.PeakMemory = max(r.PeakMemory, p.peakMemory())
	}
	return nil
}

// finish prints the summary and writes the JSON file. It returns an error if anything differed.
func (r *report) finish(jsonFile string) error {
	var coded, dense uint64
	for _, v := range r.Versions {
		coded += v.Coded
		dense += v.Dense
	}
	n := uint64(r.Rollouts)
	fmt.Printf("\ntrainer sent %s to %d rollouts, %.2f times the code; rollouts sent each other %s\n",
		humanize.Bytes(r.TrainerSent), n, ratio(r.TrainerSent, coded), humanize.Bytes(r.PeerSent))
	fmt.Printf("full copies to each would have been %s: %.0f times what the trainer sent\n", humanize.Bytes(dense*n), ratio(dense*n, r.TrainerSent))
	if r.PeakMemory > 0 {
		fmt.Printf("peak memory of a node: %s\n", humanize.Bytes(r.PeakMemory))
	}
	if err := r.write(jsonFile); err != nil {
		return err
	}
	if !r.Identical {
		return errors.New("some rollout's tensors differ from the trainer's")
	}
	fmt.Println("every rollout's tensors equal the trainer's by SHA-256, after every update")
	return nil
}

func (r *report) write(path string) error {
	if path == "" {
		return nil
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
