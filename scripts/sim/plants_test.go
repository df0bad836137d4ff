package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsecast/sparsecast/node/sim/overlay"
)

// plant is a bug that is put into the sources on purpose, to see that the simulation finds it.
type plant struct {
	name    string
	foundBy string // the invariant
	within  uint64 // seeds, from 1 on
	patches []overlay.Patch
}

var allPlants = flag.Bool("plants", false, "plant every bug, and not only a few")

// everyTime are the plants that an ordinary run of the tests has time for.
var everyTime = []string{"head_not_kept", "slot_in_use"}

// TestPlants builds the simulation with each planted bug and wants it found, by what its author said and within as many
// seeds. That the sources pass without is what TestSeed and make sim show.
func TestPlants(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: a build and some seeds for every plant")
	}
	for _, p := range readPlants(t) {
		if !*allPlants && !slices.Contains(everyTime, p.name) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.mustBeFound(t)
		})
	}
}

// TestPlantsFit wants every plant to fit the sources as they are now, also those that few ever build.
func TestPlantsFit(t *testing.T) {
	for _, p := range readPlants(t) {
		if _, err := overlay.Write(t.TempDir(), "../..", p.patches); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

func readPlants(t *testing.T) (list []*plant) {
	t.Helper()
	files, err := filepath.Glob("../../node/sim/testdata/plants/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plants: %v", err)
	}
	for _, file := range files {
		p, err := readPlant(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func (p *plant) mustBeFound(t *testing.T) {
	dir := t.TempDir()
	o := &options{repeat: 1, jobs: 1, run: "TestSeed", patience: 2 * time.Minute, dir: dir}
	binary := filepath.Join(dir, "sim.test")
	if err := overlay.BuildTest(t.Context(), "../..", dir, "./node/sim", binary, append(overlay.Replay(), p.patches...)); err != nil {
		t.Fatal(err)
	}
	seed, why := o.firstFailure(t.Context(), binary, p.within, p.foundBy)
	if seed == 0 {
		t.Fatalf("not found within %d seeds by: %s\nother failures: %s", p.within, p.foundBy, why)
	}
	t.Logf("found by seed %d", seed)
}

// firstFailure runs seeds from 1 on until one fails for that reason.
func (o *options) firstFailure(ctx context.Context, binary string, within uint64, reason string) (seed uint64, others string) {
	for seed = 1; seed <= within && ctx.Err() == nil; seed++ {
		f := o.seed(ctx, binary, seed)
		switch {
		case f == nil:
		case strings.Contains(f.Why, reason):
			return seed, ""
		default:
			others = fmt.Sprintf("%s\nseed %d: %s", others, seed, firstLines(f.Why, 6))
		}
	}
	return 0, others
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(s, "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// readPlant reads a file with what the bug is, who finds it, and patches: the old lines after "--- file", the new ones
// after "+++".
func readPlant(file string) (*plant, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	head, rest, ok := strings.Cut(string(raw), "\n--- ")
	p := &plant{name: strings.TrimSuffix(filepath.Base(file), ".txt")}
	for line := range strings.Lines(head) {
		if text, ok := strings.CutPrefix(line, "found by: "); ok {
			p.foundBy = strings.TrimSpace(text)
		}
		if text, ok := strings.CutPrefix(line, "within: "); ok {
			if _, err := fmt.Sscan(text, &p.within); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	if !ok || p.foundBy == "" || p.within == 0 {
		return nil, fmt.Errorf("%s: want who finds it, within how many seeds, and a patch", file)
	}
	for patch := range strings.SplitSeq("\n"+rest, "\n--- ") {
		name, text, _ := strings.Cut(strings.TrimPrefix(patch, "\n"), "\n")
		before, after, ok := strings.Cut(text, "\n+++\n")
		if !ok {
			return nil, fmt.Errorf("%s: the patch of %s has no +++", file, name)
		}
		p.patches = append(p.patches, overlay.Patch{File: name, Old: before, New: strings.TrimSuffix(after, "\n")})
	}
	return p, nil
}
