package bench

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/sparsecast/sparsecast/delta"
)

var update = flag.Bool("update", false, "write the golden tables anew")

// sample is a report with everything in it, some of it as large as it gets.
func sample() *Report {
	small := Pair{
		From: "8", To: "9", Edge: Edge{Elements: 4462592, Changed: 56017, Dense: 8925184, Stream: 36418, Manifest: 298, Outboard: 956},
		Bound: 34779.4, Peers: []PeerSize{
			{Name: "index", Bytes: 336330}, {Name: "grail", Bytes: 183791, Zstd: "C"}, {Name: "gap u8", Bytes: 152876, Zstd: "C"},
			{Name: "xor", Bytes: 143567, Zstd: "C"}, {Name: patchFromPeer, Bytes: 184097, Zstd: "C -9"},
		},
	}
	large := Pair{
		From: "999999", To: "1000000", Edge: Edge{Elements: 500e9, Changed: 25e9, Dense: 1e12, Stream: 17.5e9, Manifest: 17e6, Outboard: 32e6},
		Bound: 17e9, Peers: []PeerSize{{Name: "grail", Bytes: 60e9, Zstd: "Go"}, {Name: "gap u8", Bytes: 50e9, Zstd: "Go"}, {Name: "xor", Bytes: 48e9, Zstd: "Go"}},
	}
	none := Pair{From: "10", To: "11", Edge: Edge{Elements: 10, Dense: 20, Stream: 9, Manifest: 200, Outboard: 70}}
	r := &Report{
		Source: "grpo-lr1e-6", Tensors: 57, Pairs: []Pair{small, none, large},
		Machine: Machine{CPU: "AMD EPYC 9654 96-Core Processor", Cores: 192, OS: "linux", Arch: "amd64", Go: "go1.26.8", Load: "23.45"},
		Anchor:  Anchor{State: "1000000", Edge: Edge{Dense: 8925184, Stream: 5903354}, Files: 8925656, Share: 0.6614},
		Squashed: &Squashed{
			From: "8", To: "1000000", Edge: Edge{Elements: 4462592, Changed: 266900, Stream: 130889}, Singles: 373945, Share: 0.35,
		},
		SpeedOf: &SpeedOf{From: "999999", To: "1000000", Copies: 16, Bytes: 142802944, Density: 0.01216, Rounds: 9},
		Speeds: []Speed{
			{Kernel: "avx512", Threads: 1, Cores: 1, Memmove: 20.13e9, Encode: Rate{4.08e9, 0.202, 1}, Apply: Rate{5.43e9, 0.269, 1}},
			{Kernel: "avx512", Threads: 192, Cores: 171.3, Memmove: 400e9, Encode: Rate{128.4e9, 0.321, 31.5}, Apply: Rate{170e9, 0.425, 31.3}},
		},
		Notes: []string{withoutZstd},
	}
	for i := range r.Pairs {
		r.Pairs[i].rate()
	}
	r.Sum = sum(r.Pairs[:2])
	return r
}

// TestTableGolden pins what is printed. Tables fit 100 columns; notes are prose.
func TestTableGolden(t *testing.T) {
	var out bytes.Buffer
	r := sample()
	if err := r.write(&out, ""); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "table.txt")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("printed\n%s\nwant\n%s", out.Bytes(), want)
	}
	for line := range bytes.Lines(out.Bytes()) {
		if n := utf8.RuneCount(bytes.TrimRight(line, "\n")); n > 100 && !bytes.HasPrefix(line, []byte("note: ")) {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestJSON reads back what is written to a file, and to standard output alone.
func TestJSON(t *testing.T) {
	r := sample()
	file := filepath.Join(t.TempDir(), "out.json")
	var table, out bytes.Buffer
	if err := r.write(&table, file); err != nil || table.Len() == 0 {
		t.Fatalf("%d bytes of tables, %v", table.Len(), err)
	}
	if err := r.write(&out, "-"); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(b, out.Bytes()) {
		t.Errorf("file and standard output differ (%v)", err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(&back, r) {
		t.Errorf("read back %+v, %v; want %+v", back, err, r)
	}
}

// TestSum adds pairs up, and rates the sum and not the rates.
func TestSum(t *testing.T) {
	s := sample().Sum
	if s.Changed != 56017 || s.Elements != 4462602 || s.Stream != 36427 || s.Bound != 34779.4 {
		t.Errorf("sum %+v", s)
	}
	if s.OfBound != 36427/34779.4 || s.BytesPerChanged != 36427.0/56017 || s.Density != 56017.0/4462602 {
		t.Errorf("rates of the sum: %+v", s)
	}
	if len(s.Peers) != 0 { // none took all pairs
		t.Errorf("sum of peers %+v", s.Peers)
	}
	twice := sample().Pairs[:1]
	twice = append(twice, twice[0])
	s = sum(twice)
	if w, ok := s.peer("index"); !ok || w.Bytes != 2*336330 || w.Ours != float64(36418+298)/336330 {
		t.Errorf("sum of peers %+v", s.Peers)
	}
	if got := sum(nil); !reflect.DeepEqual(got, Pair{}) {
		t.Errorf("sum of nothing %+v", got)
	}
}

// TestSpeeds times a small pair once, on every kernel, and leaves the processor as it was.
func TestSpeeds(t *testing.T) {
	p := pairOf(t, "BF16", 3, bf16s(1, 2, 3), bf16s(1, 2, 4))
	many, copies, err := repeated(p, 60)
	if err != nil || copies != 10 || many.new.Schema().Bytes() != 60 {
		t.Fatalf("%d copies, %v", copies, err)
	}
	if _, copies, err := repeated(p, 1<<40); err != nil || copies != maxCopies {
		t.Errorf("%d copies, %v", copies, err)
	}
	if same, copies, err := repeated(p, 6); err != nil || copies != 1 || same != p {
		t.Errorf("%d copies, %v", copies, err)
	}
	e, err := measureEdge(t.Context(), many)
	if err != nil || e.Changed != 10 || e.Elements != 30 {
		t.Errorf("repeated: %+v, %v", e, err)
	}
	t.Setenv(kernelVariable, "")
	speeds, err := measureSpeed(t.Context(), many, 1, func(string, ...any) {})
	if err != nil || len(speeds) != len(delta.Kernels())*len(threadCounts()) {
		t.Fatalf("%d speeds, %v", len(speeds), err)
	}
	for _, s := range speeds {
		for _, n := range []float64{s.Memmove, s.Encode.Speed, s.Encode.OfMemmove, s.Encode.OfOne, s.Apply.Speed, s.Apply.OfMemmove, s.Apply.OfOne} {
			if !(n > 0) {
				t.Errorf("%+v has a speed of %v", s, n)
			}
		}
	}
	t.Setenv(kernelVariable, "go")
	if speeds, err := measureSpeed(t.Context(), many, 1, func(string, ...any) {}); err != nil || len(speeds) != len(threadCounts()) || speeds[0].Kernel != "go" {
		t.Errorf("one kernel: %+v, %v", speeds, err)
	}
	t.Setenv(kernelVariable, "abacus")
	if _, err := measureSpeed(t.Context(), many, 1, func(string, ...any) {}); err == nil {
		t.Error("a kernel that there is not: no error")
	}
	if err := delta.UseKernel(delta.Kernels()[0]); err != nil {
		t.Error(err)
	}
}

// TestCopyState copies every byte, by any number of threads.
func TestCopyState(t *testing.T) {
	data := make([]byte, 5*copyPiece/2)
	for i := range data {
		data[i] = byte(i*i>>3) | 1
	}
	for _, threads := range []int{1, 2, 3, 8} {
		p := pairOf(t, "U8", len(data), data, nil)
		copyState(p.new, p.old, threads)
		if !equal(p.new, p.old) {
			t.Errorf("%d threads copy something else", threads)
		}
	}
}

// TestRates takes medians of ratios, not ratios of medians, and scaling from the fastest rounds.
func TestRates(t *testing.T) {
	timed := times{}
	timed.add(lap{1, 4, 2, 6})
	timed.add(lap{2, 2, 8, 15})
	timed.add(lap{3, 30, 3, 33})
	one := times{}
	one.add(lap{1, 8, 3, 11})
	one.add(lap{1, 9, 2, 11})
	got := timed.speed(24, one)
	want := Speed{Cores: 1.5, Memmove: 12, Encode: Rate{6, 0.25, 4}, Apply: Rate{8, 0.5, 1}}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{5, 1, 100}, 5}, {[]float64{4, 3, 2, 1}, 2.5}} {
		if got := median(c.of); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.of, got, c.want)
		}
	}
}
