package mesh

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
)

const (
	// maxSkew is how far a host's clock may be off before it is a problem: epochs, and what people read in the log, are
	// held against clocks, but nothing that needs them to agree any better.
	maxSkew = 2 * time.Minute
	// maxClock bounds what a peer may say its time is, in milliseconds since 1970: the year 10889.
	maxClock = 1 << 48
)

// clocks remembers how far the clocks of connected peers are ahead of this host's.
type clocks struct {
	told *recall

	mu      sync.Mutex // guards offsets
	offsets map[peer.ID]time.Duration
}

func newClocks() *clocks {
	return &clocks{told: newRecall(1), offsets: make(map[peer.ID]time.Duration)}
}

// note takes in what p's clock said between two looks at this host's.
func (c *clocks) note(p peer.ID, clock uint64, before, after time.Time) {
	here := before.Add(after.Sub(before) / 2)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offsets[p] = time.UnixMilli(int64(clock)).Sub(here).Round(time.Millisecond)
}

// drop forgets a peer that is gone.
func (c *clocks) drop(p peer.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.offsets, p)
}

// skew returns how far most peers' clocks are ahead of this host's: the median, or of an even number the one of the two
// in the middle that accuses this host less. n is how many peers have told.
func (c *clocks) skew() (ahead time.Duration, n int) {
	c.mu.Lock()
	sorted := make([]time.Duration, 0, len(c.offsets))
	for _, d := range c.offsets {
		sorted = append(sorted, d)
	}
	c.mu.Unlock()
	if n = len(sorted); n == 0 {
		return 0, 0
	}
	slices.Sort(sorted)
	middle := sorted[(n-1)/2 : n/2+1]
	return slices.MinFunc(middle, func(a, b time.Duration) int { return cmp.Compare(a.Abs(), b.Abs()) }), n
}

// problems tells when this host's clock differs from most peers'.
func (c *clocks) problems() []Problem {
	ahead, n := c.skew()
	if ahead.Abs() <= maxSkew {
		return nil
	}
	where := "behind"
	if ahead < 0 {
		where = "ahead of"
	}
	return []Problem{{Text: fmt.Sprintf("this host's clock is %s %s most of %d peers': set the one that is wrong, best by NTP",
		ahead.Abs().Round(time.Second), where, n)}}
}

// say logs the problem, if there is one, once in a while.
func (c *clocks) say(log zerolog.Logger) {
	for _, p := range c.problems() {
		if c.told.news(topic{}, p.Text, time.Now()) {
			log.Warn().Msg(p.Text)
		}
	}
}

// Clock returns the time to open an epoch at: this host's, or most peers' where they are far behind it and would refuse
// what lies that far ahead. An epoch only has to be above all others of the run, so one that is opened by a clock that
// is wrong, or by those of liars, does no harm; one that most refuse would, and so would a trainer that anybody could
// talk out of publishing.
func (r *Run) Clock() time.Time {
	now := r.mesh.cfg.Now()
	if ahead, _ := r.mesh.heads.clocks.skew(); ahead < -r.cfg.MaxAhead/2 {
		return now.Add(ahead)
	}
	return now
}

func ofEpoch(epoch uint64) time.Time { return time.UnixMilli(int64(min(epoch, maxClock))) }

// mindClock says when p, at whose place it is now, refuses what this trainer publishes: p itself tells only its own
// operator.
func (r *Run) mindClock(p peer.ID, now time.Time) {
	v := r.keeper.current().head.Value.Version
	ahead := ofEpoch(v.Epoch).Sub(now)
	if r.mesh.cfg.Role != RoleTrainer || ahead <= r.cfg.MaxAhead {
		return
	}
	text := fmt.Sprintf("refuses version %s: by its clock that epoch begins in %s, and %s is the most it allows; set the clock that is wrong",
		v, ahead.Round(time.Second), r.cfg.MaxAhead)
	if r.keeper.refused.news(topic{p, "clock"}, text, time.Now()) {
		r.keeper.log.Warn().Stringer("peer", p).Stringer("version", v).Dur("ahead", ahead).Msg("a peer refuses what is published: clocks differ")
	}
}
