package mesh

import (
	"errors"
	"slices"
	"testing"
)

func TestBitmapsOfWrongFormAreRefused(t *testing.T) {
	for _, c := range []struct {
		bits   []byte
		chunks int
		held   int // -1: refused
	}{
		{nil, 10, 0}, {[]byte{0xff, 0x03}, 10, 10}, {[]byte{0x81}, 8, 2},
		{[]byte{0xff, 0x04}, 10, -1}, {[]byte{1}, 10, -1}, {[]byte{1, 0, 0}, 10, -1},
	} {
		b, err := parseBitmap(c.bits, c.chunks)
		switch {
		case c.held < 0 && !errors.Is(err, errMalformed):
			t.Errorf("%x for %d chunks: %v", c.bits, c.chunks, err)
		case c.held >= 0 && (err != nil || b.count() != c.held):
			t.Errorf("%x for %d chunks: %d held, %v", c.bits, c.chunks, b.count(), err)
		}
	}
}

func TestSubscriptionsTellEveryChunkOnce(t *testing.T) {
	p := newPayload(t, 2000, 1)
	s := &subscription{chunks: p.m.Chunks, told: newBitmap(2000)}
	store := NewMemoryStore()
	p.fill(t, store, 0, 100)
	s.scan(store)
	if m := s.have(p.id); bitmap(m.Bits).count() != 100 || len(s.fresh) != 0 {
		t.Errorf("told %d chunks of 100", bitmap(m.Bits).count())
	}
	var told []uint32
	for i := 1999; i >= 0; i-- {
		s.add(i)
		s.add(i)
	}
	if s.complete() {
		t.Error("complete with news to tell")
	}
	for len(s.fresh) > 0 {
		m := s.more(p.id)
		if err := m.validate(); err != nil {
			t.Fatal(err)
		}
		told = append(told, m.Indices...)
	}
	slices.Sort(told)
	if len(told) != 1900 || told[0] != 100 || len(slices.Compact(told)) != 1900 || !s.complete() {
		t.Errorf("told %d chunks besides, want the other 1900", len(told))
	}
}
