package mesh

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
)

func testKeeper(t *testing.T, disk FS) (*keeper, *Stats) {
	t.Helper()
	k, stats, err := openKeeper(disk, testRun)
	if err != nil {
		t.Fatal(err)
	}
	return k, stats
}

func openKeeper(disk FS, run string) (*keeper, *Stats, error) {
	cfg := RunConfig{Name: run, Publishers: []peer.ID{idOf(testKey(0))}, MaxAhead: time.Hour}
	stats := new(Stats)
	k, err := newKeeper(cfg, func() time.Time { return bookTime }, disk, stats, zerolog.Nop())
	return k, stats, err
}

func TestKeeperAdoptsWhatIsNewAndCountsTheRest(t *testing.T) {
	k, stats := testKeeper(t, newDiskStub())
	head := mustSeal(t, testHead(now(2)), 0)
	catalogue := mustSealCatalogue(t, testCatalogue(now(0).Epoch, 1, 2), 0)
	steps := []struct {
		what            string
		head, catalogue []byte
		hv, cv          verdict
		update          bool
	}{
		{"a head alone", head.Raw, nil, accepted, absent, true},
		{"its catalogue", head.Raw, catalogue.Raw, duplicate, accepted, true},
		{"both again", head.Raw, catalogue.Raw, duplicate, duplicate, false},
		{"an old head", mustSeal(t, testHead(now(1)), 0).Raw, nil, stale, absent, false},
		{"a forged head with a good catalogue", mustSeal(t, testHead(now(3)), 1).Raw,
			mustSealCatalogue(t, testCatalogue(now(0).Epoch, 2, 1), 0).Raw, forged, accepted, true},
		{"noise", []byte("noise"), nil, malformed, absent, false},
		{"another root", mustSeal(t, with(testHead(now(2)), 1), 0).Raw, nil, conflicting, absent, true}, // it freezes the epoch
	}
	for _, s := range steps {
		hv, cv, err := k.take("", s.head, s.catalogue)
		if hv != s.hv || cv != s.cv || err != nil {
			t.Errorf("%s: %s, %s, %v", s.what, hv, cv, err)
		}
		if got := drained(k.updates); got != s.update {
			t.Errorf("%s: update %v, want %v", s.what, got, s.update)
		}
	}
	if l := k.current(); l.head.Value != head.Value || l.catalogue.Value.Seq != 2 {
		t.Errorf("ended at %+v", l)
	}
	for name, want := range map[string]uint64{
		"heads_accepted": 1, "heads_forged": 1, "heads_stale": 1, "heads_conflicting": 1, "messages_malformed": 1,
	} {
		if got := stats.Snapshot()[name]; got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func drained(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestAFrozenEpochIsAProblemUntilANewOne(t *testing.T) {
	k, _ := testKeeper(t, newDiskStub())
	for _, h := range []Head{testHead(now(2)), with(testHead(now(2)), 1)} {
		if _, _, err := k.take("", mustSeal(t, h, 0).Raw, nil); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(2 * recallFor)
	if all := k.problems(later); len(all) != 1 || all[0].Peer != idOf(testKey(0)) || !strings.Contains(all[0].Text, "frozen") {
		t.Errorf("problems: %v", all)
	}
	if _, _, err := k.take("", mustSeal(t, testHead(Version{now(0).Epoch + 1, 0}), 0).Raw, nil); err != nil {
		t.Fatal(err)
	}
	if l := k.current(); l.frozen || slices.ContainsFunc(k.problems(later), func(p Problem) bool { return strings.Contains(p.Text, "frozen") }) {
		t.Errorf("a new epoch is frozen, too: %v", k.problems(later))
	}
}

// The proof of a conflict that finds the disk full is kept once there is room and the other root is heard again.
func TestProofIsKeptOnceThereIsRoom(t *testing.T) {
	disk := newDiskStub()
	k, _ := testKeeper(t, disk)
	other := mustSeal(t, with(testHead(now(2)), 1), 0).Raw
	for i, step := range []struct {
		head []byte
		fail error
	}{{mustSeal(t, testHead(now(2)), 0).Raw, nil}, {other, errors.New("disk full")}, {other, nil}, {other, errors.New("not asked again")}} {
		disk.setFail(step.fail)
		if _, _, err := k.take("", step.head, nil); err != nil {
			t.Fatal(err)
		}
		_, err := disk.ReadFile(evidenceFile)
		if kept := err == nil; kept != (i >= 2) {
			t.Errorf("step %d: kept %v", i, kept)
		}
	}
	if l := k.current(); !l.frozen {
		t.Error("not frozen")
	}
}

// Two publishers in one epoch are named once, not accused.
func TestRivalsAreSaidOnce(t *testing.T) {
	cfg := RunConfig{Name: testRun, Publishers: []peer.ID{idOf(testKey(0)), idOf(testKey(1))}, MaxAhead: time.Hour}
	lines := new(logLines)
	k, err := newKeeper(cfg, func() time.Time { return bookTime }, newDiskStub(), new(Stats), lines.logger())
	if err != nil {
		t.Fatal(err)
	}
	low, high := byRank()
	for range 3 {
		for _, h := range []sealed[Head]{mustSeal(t, testHead(now(1)), low), mustSeal(t, testHead(now(2)), high), mustSeal(t, with(testHead(now(2)), 1), low)} {
			if _, _, err := k.take("", h.Raw, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	lines.want(t, 1, "two publishers chose one epoch", idOf(testKey(low)).String(), idOf(testKey(high)).String())
	if all := k.problems(time.Now()); len(all) != 1 || !strings.Contains(all[0].Text, "two publishers chose one epoch") {
		t.Errorf("problems: %v", all)
	}
	if l := k.current(); l.frozen || l.head.Signer != idOf(testKey(high)) || l.head.Value.Version != now(2) {
		t.Errorf("ended at %s by %s, frozen %v", l.head.Value.Version, l.head.Signer, l.frozen)
	}
}

func TestKeeperAdoptsNothingThatIsNotDurable(t *testing.T) {
	disk := newDiskStub()
	k, stats := testKeeper(t, disk)
	disk.setFail(errors.New("disk on fire"))
	if _, _, err := k.take("", mustSeal(t, testHead(now(1)), 0).Raw, nil); err == nil {
		t.Error("no error")
	}
	if k.current().head.Raw != nil || drained(k.updates) || stats.HeadsAccepted.Load() != 0 {
		t.Error("adopted all the same")
	}
}

func TestKeeperGoesOnAfterACrash(t *testing.T) {
	disk := newDiskStub()
	k, _ := testKeeper(t, disk)
	head, catalogue := mustSeal(t, testHead(now(2)), 0), mustSealCatalogue(t, testCatalogue(1, 1, 2), 0)
	if _, _, err := k.take("", head.Raw, catalogue.Raw); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.take("", mustSeal(t, with(testHead(now(2)), 1), 0).Raw, nil); err != nil {
		t.Fatal(err)
	}
	again, _ := testKeeper(t, disk.crash())
	if b := again.book; b.evidence.Value.Root != with(testHead(now(2)), 1).Root || b.against.Value.Root != head.Value.Root {
		t.Errorf("of the contradiction are left %s against %s", b.evidence.Value.Root.Short(), b.against.Value.Root.Short())
	}
	if l := again.current(); !l.frozen || l.conflict != now(2) {
		t.Errorf("frozen: %v at %s", l.frozen, l.conflict)
	}
	if l := again.current(); l.head.Value != head.Value || l.head.Signer != idOf(testKey(0)) || len(l.catalogue.Value.Edges) != 2 {
		t.Errorf("came back with %+v", l)
	}
	if !drained(again.updates) {
		t.Error("whoever waits for updates never hears of the kept head")
	}
	if hv, _, _ := again.take("", mustSeal(t, testHead(now(1)), 0).Raw, nil); hv != stale {
		t.Errorf("a replayed head is %s", hv)
	}
	if hv, _, _ := again.take("", mustSeal(t, testHead(now(3)), 0).Raw, nil); hv != conflicting {
		t.Errorf("in a frozen epoch a new head is %s", hv)
	}
}

func TestDamagedLedgerIsAnErrorThatNamesTheFile(t *testing.T) {
	disk := newDiskStub()
	k, _ := testKeeper(t, disk)
	if _, _, err := k.take("", mustSeal(t, testHead(now(2)), 0).Raw, mustSealCatalogue(t, testCatalogue(1, 1, 2), 0).Raw); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.take("", mustSeal(t, with(testHead(now(2)), 1), 0).Raw, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{headFile, catalogueFile, evidenceFile, againstFile} {
		hurt := disk.crash()
		hurt.files[name] = hurt.files[name][:len(hurt.files[name])-1]
		if _, _, err := openKeeper(hurt, testRun); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s cut short: %v", name, err)
		}
	}
	if _, _, err := openKeeper(disk, "another"); err == nil || !strings.Contains(err.Error(), testRun) {
		t.Errorf("the ledger of another run: %v", err)
	}
}

func TestPublishingExplainsRefusals(t *testing.T) {
	k, _ := testKeeper(t, newDiskStub())
	catalogue := func(seq uint64) sealed[Catalogue] {
		return mustSealCatalogue(t, testCatalogue(now(0).Epoch, seq, 1), 0)
	}
	if err := k.publish(mustSeal(t, testHead(now(5)), 0), catalogue(5)); err != nil {
		t.Fatal(err)
	}
	if err := k.publish(mustSeal(t, testHead(now(5)), 0), catalogue(5)); err != nil {
		t.Errorf("the same again: %v", err)
	}
	for _, c := range []struct {
		head      sealed[Head]
		catalogue sealed[Catalogue]
		hint      string
	}{
		{mustSeal(t, testHead(now(4)), 0), catalogue(5), "another trainer"},
		{mustSeal(t, testHead(now(6)), 3), catalogue(6), "publishers"},
		{mustSeal(t, testHead(Version{now(0).Epoch * 2, 0}), 0), catalogue(6), "time"},
		{mustSeal(t, testHead(now(6)), 0), catalogue(4), "older"},
		{mustSeal(t, with(testHead(now(5)), 1), 0), catalogue(7), "contradicts"},
	} {
		if err := k.publish(c.head, c.catalogue); err == nil || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("want an error with %q, got %v", c.hint, err)
		}
	}
	if l := k.current(); l.head.Value.Version != now(5) || l.catalogue.Value.Seq != 5 {
		t.Errorf("half of a refused publication was adopted: %s, %d", l.head.Value.Version, l.catalogue.Value.Seq)
	}
}

// dyingDisk loses its power at a later call that changes something.
type dyingDisk struct {
	*diskStub
	left int
}

var errDead = errors.New("the power is gone")

func (d *dyingDisk) dies() bool {
	d.left--
	return d.left < 0
}

func (d *dyingDisk) WriteFile(name string, data []byte) error {
	if d.dies() {
		return errDead
	}
	return d.diskStub.WriteFile(name, data)
}

func (d *dyingDisk) WriteDurable(name string, data []byte) error {
	if d.dies() {
		return errDead
	}
	return d.diskStub.WriteDurable(name, data)
}

func (d *dyingDisk) Sync(names ...string) error {
	if d.dies() {
		return errDead
	}
	return d.diskStub.Sync(names...)
}

// Wherever the power fails in the midst of adopting a version, the next start finds each record as it was or as it was
// to be, and never an older head.
func TestLedgerOutlivesTheLossOfPowerAtEveryCall(t *testing.T) {
	for calls := range 5 {
		disk := &dyingDisk{diskStub: newDiskStub(), left: 100}
		k, _ := testKeeper(t, disk)
		var adopted Version
		for n := uint64(1); n <= 3; n++ {
			if n == 3 {
				disk.left = calls
			}
			head := mustSeal(t, testHead(now(n)), 0)
			catalogue := mustSealCatalogue(t, testCatalogue(now(0).Epoch, n, int(n)), 0)
			if _, _, err := k.take("", head.Raw, catalogue.Raw); err == nil {
				adopted = head.Value.Version
			}
		}
		again, _, err := openKeeper(disk.crash(), testRun)
		if err != nil {
			t.Errorf("after %d calls: %v", calls, err)
			continue
		}
		l := again.current()
		if l.head.Value.Version.Compare(adopted) < 0 || l.catalogue.Value.Seq < 2 {
			t.Errorf("after %d calls: head %s and catalogue %d, adopted was %s", calls, l.head.Value.Version, l.catalogue.Value.Seq, adopted)
		}
	}
}
