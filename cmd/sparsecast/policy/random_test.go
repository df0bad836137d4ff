package policy

import (
	"math"
	"testing"
)

// moments returns mean, spread and the largest size of n numbers from next.
func moments(n int, next func() float32) (mean, spread, largest float64) {
	var sum, squares float64
	for range n {
		x := float64(next())
		sum += x
		squares += x * x
		largest = max(largest, math.Abs(x))
	}
	mean = sum / float64(n)
	return mean, math.Sqrt(squares/float64(n) - mean*mean), largest
}

func TestNormalNumbers(t *testing.T) {
	r := random(1)
	for name, next := range map[string]func() float32{"rough": r.rough, "fine": r.fine} {
		mean, spread, largest := moments(1<<20, next)
		if math.Abs(mean) > 0.005 || math.Abs(spread-1) > 0.005 {
			t.Errorf("%s: mean %.4f, spread %.4f; want 0 and 1", name, mean, spread)
		}
		if limit := map[string]float64{"rough": 3.47, "fine": 6}[name]; largest > limit || largest < 3 {
			t.Errorf("%s: largest %.2f, want 3 to %.2f", name, largest, limit)
		}
	}
}

func TestLognormalIsNormalInItsLogarithm(t *testing.T) {
	r := random(2)
	mean, spread, _ := moments(1<<18, func() float32 {
		return float32(math.Log2(float64(r.lognormal(0.5))))
	})
	// Rounding down to sixteenths takes half a sixteenth off the mean.
	if math.Abs(mean+1.0/32) > 0.005 || math.Abs(spread-0.5) > 0.005 {
		t.Errorf("mean %.4f, spread %.4f of the logarithm; want -0.031 and 0.5", mean, spread)
	}
}

func TestSixteenthsAreRoots(t *testing.T) {
	for i, x := range sixteenths {
		if want := float32(math.Exp2(float64(i) / 16)); math.Abs(float64(x-want)) > 2e-7 {
			t.Errorf("2^(%d/16) = %v, want %v", i, x, want)
		}
	}
}

func TestBranchesDiffer(t *testing.T) {
	seen := map[uint64][]uint64{}
	for a := range uint64(50) {
		for b := range uint64(50) {
			for _, place := range [][]uint64{{a, b}, {a, b, 0}} {
				s := branch(7, place...)
				if other, ok := seen[s]; ok {
					t.Fatalf("places %v and %v share a stream", place, other)
				}
				seen[s] = place
			}
		}
	}
}
