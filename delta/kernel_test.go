package delta

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// withKernels runs a test with each kernel of this processor.
func withKernels(t *testing.T, test func(t *testing.T)) {
	before := active.name
	defer func() { try(t, UseKernel(before)) }()
	for _, name := range Kernels() {
		try(t, UseKernel(name))
		t.Run(name, test)
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// drawWords draws words for a span, and what became of them.
func drawWords[T word](t *rapid.T) (old, new []T) {
	r := newRand(t)
	old = make([]T, rowWords*rapid.IntRange(1, spanRows).Draw(t, "rows"))
	kind := rapid.SampledFrom([]string{"random", "zero", "one exponent", "extremes"}).Draw(t, "kind")
	for i := range old {
		switch kind {
		case "random":
			old[i] = T(r.Uint64())
		case "one exponent":
			old[i] = T(r.Uint64())&7 | topBit[T]()>>2
		case "extremes":
			old[i] = T(0) - T(r.IntN(2))
		}
	}
	new = append(new, old...)
	density := rapid.SampledFrom([]float64{0, 0.001, 0.02, 0.5, 1}).Draw(t, "density")
	for i := range new {
		if r.Float64() < density {
			new[i] ^= T(1) << r.IntN(8)
		}
	}
	if rapid.Bool().Draw(t, "the last word") {
		new[len(new)-1]++
	}
	return old, new
}

// What a kernel finds out about a span is what a look at each word says.
func TestKernels(t *testing.T) {
	withKernels(t, func(t *testing.T) {
		t.Run("bytes", rapid.MakeCheck(checkSpan[uint8]))
		t.Run("words of 2 bytes", rapid.MakeCheck(checkSpan[uint16]))
		t.Run("words of 4 bytes", rapid.MakeCheck(checkSpan[uint32]))
		t.Run("words of 8 bytes", rapid.MakeCheck(checkSpan[uint64]))
	})
}

func checkSpan[T word](t *rapid.T) {
	old, new := drawWords[T](t)
	width := len(wordBytes(old)) / len(old)
	var codes []coding
	for _, dtype := range dtypes {
		if c := codingOf(dtype); c.width == width {
			codes = append(codes, c)
		}
	}
	rule := ruleOf(rapid.SampledFrom(codes).Draw(t, "coding"), rapid.Uint8().Draw(t, "floor"))
	s := &span{}
	for i := range s.members { // nothing may be left of what was there before
		s.members[i][i%classCount], s.before[i][i%classCount], s.changed[i] = ^uint64(0), 7, 3
	}
	places := diff(s, old, new)
	for i, w := range old {
		if w == new[i] {
			continue
		}
		if len(places) == 0 || int(places[0]) != i {
			t.Fatalf("word %d changed, the list goes on with %v", i, places[:min(3, len(places))])
		}
		places = places[1:]
	}
	if len(places) > 0 {
		t.Fatalf("%d words too many are said to have changed", len(places))
	}
	arrange(s, old, &rule)
	var ranks [classCount][]uint32
	var where [classCount][]uint16
	begin := rapid.Uint32Range(0, 1<<31).Draw(t, "begin")
	for i, w := range old {
		class := rule.class(uint64(w))
		if rank := s.rank(class, uint16(i)); int(rank) != len(where[class]) {
			t.Fatalf("word %d has rank %d in class %d, want %d", i, rank, class, len(where[class]))
		}
		ranks[class] = append(ranks[class], begin+uint32(len(where[class])))
		where[class] = append(where[class], uint16(i))
	}
	keep := rapid.SampledFrom([]int{1, 2, 7, 1000}).Draw(t, "one of how many is looked for")
	for class, all := range ranks {
		if int(s.totals[class]) != len(all) {
			t.Fatalf("%d words of class %d, want %d", s.totals[class], class, len(all))
		}
		var some []uint32
		var want []uint16
		for i := class % keep; i < len(all); i += keep {
			some, want = append(some, all[i]), append(want, where[class][i])
		}
		n := len(some)
		some = append(some, begin+uint32(len(all))+uint32(class)) // of a later span
		if got := s.find(class, some, begin); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("class %d: the words of ranks %v are %v, want %v", class, some[:n], got, want)
		}
	}
}

// All kernels write the same bytes and read them, whatever the lengths and the words.
func TestKernelsWriteTheSameBytes(t *testing.T) {
	before := active.name
	defer func() { try(t, UseKernel(before)) }()
	lengths := []int{0, 1, 2, 3, 5, 63, 64, 65, 511, 512, 513, 4095, 4096, 4097, 5000, 70000, 131072, BlockWords + 1}
	for name, fill := range fills {
		for _, n := range lengths {
			old := newState(t, []Tensor{
				tensorOf("a", "BF16", 2, uint64(n)), tensorOf("b", "F8_E4M3", 1, uint64(n)), tensorOf("c", "F16", 2, uint64(n)), tensorOf("d", "F32", 4, uint64(n)),
			}, make([]byte, 2*n), make([]byte, n), make([]byte, 2*n), make([]byte, 4*n))
			new := clone(old)
			r := rand.New(rand.NewPCG(uint64(n), 5))
			for i := range old.tensors {
				fill(r, old.tensors[i], new.tensors[i])
			}
			var want []byte
			for i, k := range Kernels() {
				try(t, UseKernel(k))
				got := encodeToBytes(t, old, new)
				if i == 0 {
					want = got
				} else if !bytes.Equal(got, want) {
					t.Fatalf("%s, %d words: kernel %s writes other bytes than %s", name, n, k, Kernels()[0])
				}
				result, _, err := decodeBytes(want, old)
				try(t, err)
				for j, b := range result.tensors {
					if !bytes.Equal(b, new.tensors[j]) {
						t.Fatalf("%s, %d words: kernel %s reads other words", name, n, k)
					}
				}
			}
		}
	}
}

// fills make both states of a tensor.
var fills = map[string]func(r *rand.Rand, old, new []byte){
	"unrelated": func(r *rand.Rand, old, new []byte) {
		for i := range old {
			old[i], new[i] = byte(r.Uint32()), byte(r.Uint32())
		}
	},
	"few changes": func(r *rand.Rand, old, new []byte) {
		for i := range old {
			old[i] = byte(r.Uint32())
			new[i] = old[i]
			if r.IntN(50) == 0 {
				new[i] ^= 1
			}
		}
	},
	"the last byte": func(r *rand.Rand, old, new []byte) {
		for i := range old {
			old[i] = byte(r.Uint32())
		}
		if copy(new, old) > 0 {
			new[len(new)-1]++
		}
	},
	"signs": func(r *rand.Rand, old, new []byte) {
		for i := range old {
			old[i] = byte(r.Uint32())
			new[i] = old[i] ^ 0x80
		}
	},
	"not a number": func(r *rand.Rand, old, new []byte) {
		for i := range old {
			old[i], new[i] = 0xff, 0xff-byte(bits.TrailingZeros32(r.Uint32()|1<<7))
		}
	},
	"minus zero": func(_ *rand.Rand, old, new []byte) {
		for i := range old {
			old[i], new[i] = byte(i%2)<<7, 0xff>>(i%2)
		}
	},
}

func TestUnknownKernel(t *testing.T) {
	before := active.name
	if err := UseKernel("abacus"); err == nil || active.name != before {
		t.Errorf("kernel %s is in use, %v", active.name, err)
	}
}
