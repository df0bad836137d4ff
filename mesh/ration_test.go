package mesh

import (
	"testing"
	"time"
)

func TestAFloodIsHeldBack(t *testing.T) {
	r := newRation(askRate, askBurst)
	at, admitted := time.Unix(0, 0), 0
	for range 1000 {
		if r.allow("flooder", at) {
			admitted++
		}
		at = at.Add(time.Millisecond)
	}
	if admitted < askBurst || admitted > askBurst+askRate {
		t.Errorf("%d questions in a second", admitted)
	}
	if !r.allow("someone else", at) {
		t.Error("one peer's flood keeps another out")
	}
	for i := range 3 * maxConns {
		r.allow(idOf(testKey(i)), at.Add(time.Duration(i)*time.Minute))
	}
	if len(r.peers) > maxConns {
		t.Errorf("%d peers are remembered", len(r.peers))
	}
}
