package mesh

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// verdict is what a book says about a record.
type verdict uint8

const (
	absent      verdict = iota // there was none
	accepted                   // newer than what is known
	duplicate                  // known already
	stale                      // older than what is known
	conflicting                // another content for a version already known
	early                      // its epoch lies too far ahead of the clock
	forged                     // bad signature, no publisher, or another run
	malformed                  // does not decode
)

func (v verdict) String() string {
	return [...]string{"absent", "accepted", "duplicate", "stale", "conflicting", "early", "forged", "malformed"}[v]
}

// book holds the newest head and catalogue of a run and decides about every other. It is plain state: no clock, no
// lock, no disk. Judge first, make durable, then adopt; see keeper. How records are ordered is told in doc.go.
type book struct {
	run        string
	publishers map[peer.ID]struct{}
	maxAhead   time.Duration

	head      sealed[Head]      // zero while none is known
	catalogue sealed[Catalogue] // likewise
	// evidence is a head that contradicts another one of its epoch by the same signer, which is kept in against. A
	// publisher that signs two states under one version is broken or robbed, so nothing more of that epoch is accepted;
	// a restart opens a new epoch.
	evidence, against sealed[Head]
}

func newBook(run string, publishers []peer.ID, maxAhead time.Duration) *book {
	return &book{run: run, publishers: setOf(publishers), maxAhead: maxAhead}
}

func (b *book) listed(id peer.ID) bool {
	_, ok := b.publishers[id]
	return ok
}

// judgeHead opens a signed head and decides about it. The error says why for every verdict that refuses.
func (b *book) judgeHead(raw []byte, now time.Time) (sealed[Head], verdict, error) {
	switch {
	case len(raw) == 0:
		return sealed[Head]{}, absent, nil
	case bytes.Equal(raw, b.head.Raw):
		return b.head, duplicate, nil
	}
	h, err := openHead(raw, b.listed)
	if err != nil {
		return h, verdictOf(err), err
	}
	v, err := b.rankHead(h.Value, h.Signer, now)
	return h, v, err
}

// rankHead decides about a head whose signature is good.
func (b *book) rankHead(h Head, signer peer.ID, now time.Time) (verdict, error) {
	if err := b.checkOrigin(h.Run, h.Version.Epoch, now); err != nil {
		return verdictOf(err), fmt.Errorf("head %s: %w", h.Version, err)
	}
	if b.head.Raw != nil {
		known := b.head.Value
		switch c := order(h.Version, signer, known.Version, b.head.Signer); {
		case c < 0:
			return stale, fmt.Errorf("head %s: %s by %s is known already", h.Version, known.Version, b.head.Signer)
		case c == 0 && h.Root == known.Root:
			return duplicate, nil
		case c == 0:
			return conflicting, fmt.Errorf("head %s: root %s, but %s was signed before", h.Version, h.Root.Short(), known.Root.Short())
		}
	}
	if b.evidence.Raw != nil && h.Version.Epoch == b.evidence.Value.Version.Epoch {
		return conflicting, fmt.Errorf("head %s: its epoch is frozen, since two roots were signed for version %s; restart the trainer to open a new epoch",
			h.Version, b.evidence.Value.Version)
	}
	return accepted, nil
}

// judgeCatalogue opens a signed catalogue and decides about it.
func (b *book) judgeCatalogue(raw []byte, now time.Time) (sealed[Catalogue], verdict, error) {
	switch {
	case len(raw) == 0:
		return sealed[Catalogue]{}, absent, nil
	case bytes.Equal(raw, b.catalogue.Raw):
		return b.catalogue, duplicate, nil
	}
	c, err := openCatalogue(raw, b.listed)
	if err != nil {
		return c, verdictOf(err), err
	}
	v, err := b.rankCatalogue(c.Value, c.Signer, now)
	return c, v, err
}

// rankCatalogue decides about a catalogue whose signature is good and whose bytes are not the known one's.
func (b *book) rankCatalogue(c Catalogue, signer peer.ID, now time.Time) (verdict, error) {
	if err := b.checkOrigin(c.Run, c.Epoch, now); err != nil {
		return verdictOf(err), fmt.Errorf("catalogue %d of epoch %s: %w", c.Seq, EpochName(c.Epoch), err)
	}
	if b.catalogue.Raw == nil {
		return accepted, nil
	}
	known := b.catalogue.Value
	switch order(Version{c.Epoch, c.Seq}, signer, Version{known.Epoch, known.Seq}, b.catalogue.Signer) {
	case -1:
		return stale, fmt.Errorf("catalogue %d of epoch %s: %d of epoch %s is known already", c.Seq, EpochName(c.Epoch), known.Seq, EpochName(known.Epoch))
	case 0:
		return conflicting, fmt.Errorf("catalogue %d of epoch %s: other edges were signed under that number before", c.Seq, EpochName(c.Epoch))
	}
	return accepted, nil
}

// order compares two records by version, and by signer where two publishers chose the same one: then the higher peer
// ID wins, whatever the order in which they came, so that all nodes end up with the same.
func order(v Version, by peer.ID, w Version, other peer.ID) int {
	return cmp.Or(v.Compare(w), cmp.Compare(by, other))
}

// rival returns the publisher that signs the same epoch as the signer of h, empty when there is none. Two publishers in
// one epoch are no fraud, but hardly meant, unless they announce one base.
func (b *book) rival(h sealed[Head]) peer.ID {
	known := b.head.Value
	if b.head.Raw == nil || h.Value.Version.Epoch != known.Version.Epoch || h.Signer == b.head.Signer || known.Version == BaseVersion(h.Value.Root) {
		return ""
	}
	return b.head.Signer
}

var errEarly = errors.New("ahead of the clock")

func (b *book) checkOrigin(run string, epoch uint64, now time.Time) error {
	if run != b.run {
		return fmt.Errorf("%w: for run %q", errForged, run)
	}
	if limit := now.Add(b.maxAhead).UnixMilli(); limit < 0 || epoch > uint64(limit) {
		return fmt.Errorf("epoch %d: %w: check the time on this host and on the trainer's", epoch, errEarly)
	}
	return nil
}

// freeze keeps the first proof that a publisher contradicted itself; later ones add nothing.
func (b *book) freeze(h sealed[Head]) (first bool) {
	if b.evidence.Raw != nil && b.evidence.Value.Version.Epoch >= h.Value.Version.Epoch {
		return false
	}
	b.evidence, b.against = h, b.head
	return true
}

// frozen tells whether the newest epoch is frozen, and since which version.
func (b *book) frozen() (Version, bool) {
	v := b.evidence.Value.Version
	return v, b.evidence.Raw != nil && v.Epoch == b.head.Value.Version.Epoch
}

func verdictOf(err error) verdict {
	switch {
	case errors.Is(err, errEarly):
		return early
	case errors.Is(err, errForged):
		return forged
	}
	return malformed
}
