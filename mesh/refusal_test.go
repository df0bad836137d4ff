package mesh

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRefusedRecordsAreSaidOnceAndCountedEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, stats := testKeeper(t, newDiskStub())
		lines := new(logLines)
		k.log = lines.logger()
		if _, _, err := k.take("", mustSeal(t, testHead(now(2)), 0).Raw, mustSealCatalogue(t, testCatalogue(now(0).Epoch, 1, 1), 0).Raw); err != nil {
			t.Fatal(err)
		}
		refused := func() {
			for _, raw := range [][]byte{
				mustSeal(t, testHead(now(3)), 1).Raw,          // by a stranger
				mustSeal(t, testHead(now(4)), 1).Raw,          // by the same one
				mustSeal(t, testHead(now(3)), 2).Raw,          // by another one
				mustSeal(t, with(testHead(now(2)), 1), 0).Raw, // a second root
				mustSeal(t, testHead(now(5)), 0).Raw,          // of the epoch that this has frozen
				mustSeal(t, testHead(Version{now(0).Epoch + 2*3600_000, 1}), 0).Raw,
				[]byte("noise"), []byte("more noise"),
			} {
				if _, _, err := k.take("messenger", raw, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 3 {
			refused()
		}
		said := func(times int) {
			t.Helper()
			lines.want(t, times, "head refused", idOf(testKey(1)).String(), "put its ID under publishers")
			lines.want(t, times, "head refused", idOf(testKey(2)).String(), "put its ID under publishers")
			lines.want(t, times, "head refused", "was signed before")
			lines.want(t, times, "head refused", "frozen")
			lines.want(t, times, "head refused", "ahead of the clock")
			lines.want(t, times, "head refused", "unreadable")
			lines.want(t, 6*times, "head refused")
		}
		said(1)
		if f, c, e, m := stats.HeadsForged.Load(), stats.HeadsConflicting.Load(), stats.HeadsEarly.Load(), stats.MessagesMalformed.Load(); f != 9 || c != 6 || e != 3 || m != 6 {
			t.Errorf("counted %d forged, %d conflicting, %d early, %d malformed", f, c, e, m)
		}
		if got := len(k.refused.recent(time.Now())); got != 6 {
			t.Errorf("%d refusals are remembered, want 6", got)
		}
		time.Sleep(recallFor)
		refused()
		said(2)
		lines.want(t, 1, `"level":"error"`) // the frozen epoch
	})
}

func TestAKnownPublishersForgedSignatureBringsNoHintToAddIt(t *testing.T) {
	k, _ := testKeeper(t, newDiskStub())
	lines := new(logLines)
	k.log = lines.logger()
	other := testHead(now(1))
	other.Run = "grpo-8b"
	if _, _, err := k.take("messenger", mustSeal(t, other, 0).Raw, nil); err != nil {
		t.Fatal(err)
	}
	lines.want(t, 1, "head refused", `for run \"grpo-8b\"`)
	lines.want(t, 0, "under publishers")
}
