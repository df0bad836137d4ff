package delta

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// benchPair returns a bf16 state of normal weights and one in which about density of them moved by a step, mostly
// small ones, as training does.
func benchPair(b *testing.B, elements int, density float64) (old, new *Memory) {
	schema, err := NewSchema([]Tensor{{Name: "w", DType: "BF16", Shape: []uint64{uint64(elements)}, Size: int64(2 * elements)}})
	if err != nil {
		b.Fatal(err)
	}
	old, new = NewMemory(schema), NewMemory(schema)
	r := rand.New(rand.NewPCG(1, 2))
	o, n := old.tensors[0], new.tensors[0]
	for i := range elements {
		v := r.NormFloat64() * 0.02
		w := uint16(math.Float32bits(float32(v)) >> 16)
		o[2*i], o[2*i+1] = byte(w), byte(w>>8)
		if r.Float64() < density*0.004/math.Abs(v) {
			w += uint16(1 - 2*r.IntN(2))
		}
		n[2*i], n[2*i+1] = byte(w), byte(w>>8)
	}
	return old, new
}

// copySpeed returns how fast this machine copies dense bytes just now, in bytes a second: the bound that speeds are
// told against, since times alone mean nothing on a shared machine.
func copySpeed(m *Memory) float64 {
	dst := make([]byte, len(m.tensors[0]))
	best := math.Inf(1)
	for range 5 {
		begun := time.Now()
		copy(dst, m.tensors[0])
		best = min(best, time.Since(begun).Seconds())
	}
	return float64(len(dst)) / best
}

func reportRatio(b *testing.B, m *Memory) {
	speed := float64(len(m.tensors[0])) * float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(speed/1e9, "GB/s")
	b.ReportMetric(speed/copySpeed(m), "of_memmove")
}

func BenchmarkEncode(b *testing.B) {
	old, new := benchPair(b, 32<<20, 0.015)
	var out bytes.Buffer
	var sum Summary
	for b.Loop() {
		out.Reset()
		var err error
		if sum, err = Encode(context.Background(), &out, old, new, EncodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	reportRatio(b, new)
	b.ReportMetric(float64(sum.Coded)/float64(sum.Changed), "B/change")
	b.ReportMetric(100*float64(sum.Changed)/float64(sum.Elements), "%changed")
}

func BenchmarkDecode(b *testing.B) {
	old, new := benchPair(b, 32<<20, 0.015)
	var stream bytes.Buffer
	if _, err := Encode(context.Background(), &stream, old, new, EncodeOptions{}); err != nil {
		b.Fatal(err)
	}
	got := NewMemory(old.schema)
	for b.Loop() {
		if _, err := Decode(context.Background(), bytes.NewReader(stream.Bytes()), old.schema, old, got, DecodeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	reportRatio(b, new)
}

func BenchmarkRoot(b *testing.B) {
	old, _ := benchPair(b, 32<<20, 0.015)
	for b.Loop() {
		if _, err := RootOf(context.Background(), old, nil); err != nil {
			b.Fatal(err)
		}
	}
	reportRatio(b, old)
}

// benchCut returns a state of one square tensor, cut into as many strips along a dimension.
func benchCut(b *testing.B, dim int, strips uint64) *Memory {
	const side = 4096
	schema, err := NewSchemaOf([]StateTensors{{Tensors: []Tensor{tensorOf("w", "BF16", 2, side, side)}}}, func(string, Tensor) (cuts []Cut) {
		for i := range strips {
			c := boxOf(0, 0, side, side)
			c.Start[dim], c.Extent[dim] = i*side/strips, side/strips
			cuts = append(cuts, c)
		}
		return cuts
	})
	if err != nil {
		b.Fatal(err)
	}
	return NewMemory(schema)
}

// BenchmarkRootCut reads pieces: rows lie together, columns are gathered.
func BenchmarkRootCut(b *testing.B) {
	for name, m := range map[string]*Memory{"rows": benchCut(b, 0, 8), "columns": benchCut(b, 1, 8)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := RootOf(context.Background(), m, nil); err != nil {
					b.Fatal(err)
				}
			}
			reportRatio(b, m)
		})
	}
}
