package mesh

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
)

// keeper is the one way into a book: whatever gossip, peers, the ledger or the local publisher bring is judged, made
// durable and only then adopted, in that order and one at a time.
type keeper struct {
	ledger  ledger
	now     func() time.Time
	stats   *Stats
	log     zerolog.Logger
	refused *recall       // whose records were refused
	updates chan struct{} // holds a token after every change

	mu       sync.Mutex // guards what follows, and keeps the ledger in the book's order
	book     *book
	unproven bool // there is proof of a conflict that is not in the ledger

	latest  atomic.Pointer[latest]  // what is adopted, for readers that must not wait for the disk
	unnoted atomic.Pointer[Problem] // why the last version heard was not adopted, nil when it was
}

// latest is the newest head and catalogue; either may be zero.
type latest struct {
	head      sealed[Head]
	catalogue sealed[Catalogue]
	frozen    bool    // its epoch is
	conflict  Version // for which two roots are signed, where it is
}

// newKeeper opens the ledger and goes on from what it holds.
func newKeeper(cfg RunConfig, now func() time.Time, fs FS, stats *Stats, log zerolog.Logger) (*keeper, error) {
	k := &keeper{
		ledger: ledger{fs}, now: now, stats: stats, log: log,
		refused: newRecall(maxRecalled),
		updates: make(chan struct{}, 1),
		book:    newBook(cfg.Name, cfg.Publishers, cfg.MaxAhead),
	}
	if err := k.ledger.load(k.book); err != nil {
		return nil, err
	}
	k.show()
	return k, nil
}

// take judges a signed head and a signed catalogue that a peer brought, and adopts what is newer. Either may be empty.
// The error is the ledger's: then nothing was adopted, whatever the verdicts.
func (k *keeper) take(from peer.ID, head, catalogue []byte) (hv, cv verdict, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, hv, hwhy := k.book.judgeHead(head, k.now())
	c, cv, cwhy := k.book.judgeCatalogue(catalogue, k.now())
	k.note(hv, refusal{"head", from, h.Signer, hwhy})
	k.note(cv, refusal{"catalogue", from, c.Signer, cwhy})
	switch hv {
	case conflicting:
		k.freeze(h)
	case accepted, stale:
		k.noteRival(h)
	}
	if hv != accepted && cv != accepted {
		return hv, cv, nil
	}
	return hv, cv, k.adopt(h, hv, c, cv)
}

func (k *keeper) adopt(h sealed[Head], hv verdict, c sealed[Catalogue], cv verdict) error {
	if hv != accepted {
		h.Raw = nil
	}
	if cv != accepted {
		c.Raw = nil
	}
	if err := k.ledger.save(h.Raw, c.Raw); err != nil {
		k.unnoted.Store(&Problem{Text: "a newer version was heard and could not be noted: " + err.Error()})
		return err
	}
	k.unnoted.Store(nil)
	if hv == accepted {
		k.book.head = h
		k.stats.HeadsAccepted.Add(1)
	}
	if cv == accepted {
		k.book.catalogue = c
	}
	k.show()
	return nil
}

// show publishes the book's state to readers.
func (k *keeper) show() {
	l := &latest{head: k.book.head, catalogue: k.book.catalogue}
	l.conflict, l.frozen = k.book.frozen()
	k.latest.Store(l)
	if k.book.head.Raw == nil && k.book.catalogue.Raw == nil {
		return
	}
	select {
	case k.updates <- struct{}{}:
	default: // a token is waiting already
	}
}

// freeze keeps the proof of a publisher contradicting itself: in memory even when the disk fails, and on that once it can.
func (k *keeper) freeze(h sealed[Head]) {
	known := k.book.head.Value
	if k.book.freeze(h) {
		k.log.Error().Stringer("version", h.Value.Version).Stringer("signer", h.Signer).
			Str("kept", known.Root.Short()).Str("refused", h.Value.Root.Short()).
			Msg("two roots are signed for one epoch: it is frozen at the first; find out who else holds the publisher's key, then restart the trainer")
		k.unproven = true
		k.show()
	}
	if k.unproven {
		k.prove()
	}
}

// prove makes the proof that freeze has durable. What fails is tried again when the contradiction is heard again, as from
// every peer that has the other root.
func (k *keeper) prove() {
	err := k.ledger.saveEvidence(k.book.against.Raw, k.book.evidence.Raw)
	k.unproven = err != nil
	if err != nil {
		k.log.Error().Err(err).Msg("the proof of the conflict was not kept")
	}
}

// noteRival says that two publishers chose one epoch, h's. That is an accident of two trainers that know nothing of
// each other.
func (k *keeper) noteRival(h sealed[Head]) {
	other := k.book.rival(h)
	if other == "" {
		return
	}
	low, high := min(h.Signer, other), max(h.Signer, other)
	text := fmt.Sprintf("two publishers chose one epoch, %s: this one and %s; of one version that of the higher peer ID counts: stop one of the trainers",
		EpochName(h.Value.Version.Epoch), low)
	if k.refused.news(topic{high, "rival of " + low.String()}, text, time.Now()) {
		k.log.Warn().Stringer("publisher", high).Stringer("other", low).Str("epoch", EpochName(h.Value.Version.Epoch)).
			Msg("two publishers chose one epoch: stop one of the trainers")
	}
}

// current returns what is adopted.
func (k *keeper) current() *latest { return k.latest.Load() }

// problems tells whether the disk or a frozen epoch keeps this node from following, and whose records were refused.
func (k *keeper) problems(now time.Time) []Problem {
	var found []Problem
	if p := k.unnoted.Load(); p != nil {
		found = append(found, *p)
	}
	if l := k.current(); l.frozen {
		found = append(found, Problem{Peer: l.head.Signer, Text: fmt.Sprintf("signed two roots for version %s: its epoch is frozen; "+
			"find out who else holds that key, then restart the trainer", l.conflict)})
	}
	return append(found, k.refused.recent(now)...)
}

// publish adopts what this node signed itself: both halves or neither. A refusal is an error, but no evidence against
// the publisher, since nothing was sent.
func (k *keeper) publish(h sealed[Head], c sealed[Catalogue]) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, hv, _ := k.book.judgeHead(h.Raw, k.now())
	_, cv, _ := k.book.judgeCatalogue(c.Raw, k.now())
	if err := mustHold("head", h.Value.Version, hv); err != nil {
		return err
	}
	if err := mustHold("catalogue", Version{c.Value.Epoch, c.Value.Seq}, cv); err != nil {
		return err
	}
	if hv != accepted && cv != accepted {
		return nil
	}
	return k.adopt(h, hv, c, cv)
}

func mustHold(kind string, v Version, got verdict) error {
	switch got {
	case accepted, duplicate, absent:
		return nil
	case stale:
		return fmt.Errorf("%s %s is older than one already known: another trainer publishes this run, or its clock runs ahead; "+
			"stop that one or start this one with a later epoch", kind, v)
	case conflicting:
		return fmt.Errorf("%s %s contradicts one that is known already, or its epoch is frozen: restart the trainer to open a new epoch", kind, v)
	case early:
		return fmt.Errorf("%s %s lies ahead of the clock: check the time on this host", kind, v)
	case forged:
		return fmt.Errorf("%s %s is not signed by a publisher of this run: add the key's ID to the publishers", kind, v)
	}
	return fmt.Errorf("%s %s is %s", kind, v, got)
}
