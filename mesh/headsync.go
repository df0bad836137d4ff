package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
	"golang.org/x/time/rate"
)

// headProtocol asks a peer for the newest head. The asker writes one question and closes its side; the answer ends
// with the stream. There is no length on the wire to lie about: both sides read up to a bound.
const headProtocol protocol.ID = "/sparsecast/head/2"

// Bounds of the head protocol.
const (
	maxQuestion   = 256
	maxAnswer     = 1 << 20
	maxRecords    = 64               // peer records in an answer
	maxPeerRecord = 4 << 10          // bytes of each
	headPatience  = 10 * time.Second // for a question or an answer as a whole
	headSilence   = 3 * time.Second  // for the first byte of an answer
	askers        = 16               // questions under way
	askRate       = 2                // questions a peer may ask in a second, after askBurst at once
	askBurst      = 16
)

// question asks for the newest head of a run.
type question struct {
	Run string `cbor:"0,keyasint"`
}

// answer brings what the asked one has: signed records, and the time there. Each may be missing.
type answer struct {
	Head      []byte   `cbor:"0,keyasint,omitempty"`
	Catalogue []byte   `cbor:"1,keyasint,omitempty"`
	Records   [][]byte `cbor:"2,keyasint,omitempty"`
	Clock     uint64   `cbor:"3,keyasint,omitempty"` // milliseconds since 1970 at the answerer's
}

// headSync asks peers for heads and answers theirs.
type headSync struct {
	host    host.Host
	records *records
	runsOf  func(peer.ID) (runs []string, said bool)
	stats   *Stats
	log     zerolog.Logger
	runs    map[string]*Run // stays as it is once the mesh runs

	asks     *askQueue
	allowed  *ration // questions of peers
	junk     *recall // who asked what is no question
	now      func() time.Time
	clocks   *clocks
	handlers crew
}

func newHeadSync(h host.Host, r *records, runsOf func(peer.ID) ([]string, bool), now func() time.Time, stats *Stats, log zerolog.Logger) *headSync {
	return &headSync{
		host: h, records: r, runsOf: runsOf, stats: stats, log: log,
		runs: make(map[string]*Run),
		asks: newAskQueue(),
		junk: newRecall(maxRecalled),
		now:  now, clocks: newClocks(),
	}
}

// follow adds a run to ask about.
func (s *headSync) follow(r *Run) { s.runs[r.cfg.Name] = r }

// request has p asked soon. It never blocks.
func (s *headSync) request(p peer.ID) { s.asks.add(p, time.Now()) }

// serve answers questions until ctx ends.
func (s *headSync) serve(ctx context.Context) error {
	n := max(1, len(s.runs)) // one that shares all runs asks about each
	s.allowed = newRation(rate.Limit(n*askRate), n*askBurst)
	s.handlers.muster(ctx)
	s.host.SetStreamHandler(headProtocol, func(st network.Stream) {
		if !s.handlers.spawn(func() { s.handle(ctx, st) }) {
			st.Reset()
		}
	})
	<-ctx.Done()
	s.host.RemoveStreamHandler(headProtocol)
	s.handlers.dismiss()
	s.handlers.work.Wait()
	return nil
}

// askLoop asks whoever was requested, until ctx ends.
func (s *headSync) askLoop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.asks.ready:
			if p, ok := s.asks.take(); ok {
				s.inquire(ctx, p)
			}
		}
	}
}

// inquire asks p about every run that it may be in.
func (s *headSync) inquire(ctx context.Context, p peer.ID) {
	theirs, said := s.runsOf(p)
	silent := false
	for name, r := range s.runs {
		if said && !slices.Contains(theirs, name) || silent {
			continue
		}
		began := time.Now()
		if err := s.ask(ctx, p, r); err != nil && ctx.Err() == nil {
			silent = time.Since(began) >= headSilence
			s.log.Debug().Err(err).Stringer("peer", p).Str("run", name).Msg("head not learnt")
		}
	}
	s.asks.ended(p, silent, time.Now())
}

// pollLoop requests a random connected peer every now and then, so that nothing stays unheard for long.
func (s *headSync) pollLoop(ctx context.Context, every time.Duration) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(jitter(every)):
		}
		if peers := s.host.Network().Peers(); len(peers) > 0 {
			s.request(peers[rand.IntN(len(peers))])
		}
	}
}

// jitter spreads d by a quarter either way, so that nodes started together do not act together.
func jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + rand.Float64()/2))
}

// ask puts the question about a run to p and takes in what it answers.
func (s *headSync) ask(ctx context.Context, p peer.ID, r *Run) error {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "ask for the head"), headPatience)
	defer cancel()
	before := s.now()
	a, err := s.exchange(ctx, p, r)
	if err != nil {
		return err
	}
	r.members.add(p)
	if a.Clock > 0 {
		s.clocks.note(p, a.Clock, before, s.now())
		s.clocks.say(s.log)
		r.mindClock(p, time.UnixMilli(int64(a.Clock)))
	}
	if s.host.Network().Connectedness(p) != network.Connected {
		s.lost(p) // meanwhile
	}
	if _, _, err := r.keeper.take(p, a.Head, a.Catalogue); err != nil {
		return err
	}
	r.members.told()
	s.records.learn(a.Records)
	return nil
}

// exchange opens a stream for one question and one answer. A stream that went well is closed and any other reset:
// to reset after closing would take back what is still on its way.
func (s *headSync) exchange(ctx context.Context, p peer.ID, r *Run) (answer, error) {
	opening, cancel := context.WithTimeout(ctx, headSilence)
	defer cancel()
	st, err := s.host.NewStream(opening, p, headProtocol)
	if err != nil {
		return answer{}, fmt.Errorf("ask for the head: %w", err)
	}
	defer context.AfterFunc(ctx, func() { st.Reset() })()
	a, err := converse(st, r.cfg.Name)
	if err != nil {
		st.Reset()
		return answer{}, distrust(r.keeper, p, fmt.Errorf("ask for the head: %w", err))
	}
	st.Close()
	return a, nil
}

func converse(st network.Stream, run string) (answer, error) {
	q, err := delta.MarshalRecord(question{run})
	if err != nil {
		return answer{}, err
	}
	st.SetDeadline(time.Now().Add(headSilence)) // transports without deadlines are covered by a context
	if _, err := st.Write(q); err != nil {
		return answer{}, err
	}
	if err := st.CloseWrite(); err != nil {
		return answer{}, err
	}
	r := bufio.NewReader(st)
	if _, err := r.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		return answer{}, err
	}
	st.SetDeadline(time.Now().Add(headPatience))
	b, err := readAll(r, maxAnswer)
	if err != nil {
		return answer{}, err
	}
	return decodeAnswer(b)
}

// distrust counts an answer that broke the protocol; a peer that went away has not.
func distrust(k *keeper, p peer.ID, err error) error {
	if errors.Is(err, errUnreadable) {
		k.note(malformed, refusal{kind: "message", from: p, why: err})
	}
	return err
}

func decodeAnswer(b []byte) (answer, error) {
	var a answer
	if err := delta.UnmarshalRecord(b, &a); err != nil {
		return answer{}, fmt.Errorf("%w answer: %w", errUnreadable, err)
	}
	if len(a.Records) > maxRecords {
		return answer{}, fmt.Errorf("%w answer: %d peer records, at most %d", errUnreadable, len(a.Records), maxRecords)
	}
	if a.Clock > maxClock {
		return answer{}, fmt.Errorf("%w answer: a clock at %d ms, at most %d", errUnreadable, a.Clock, uint64(maxClock))
	}
	return a, nil
}

func decodeQuestion(b []byte) (question, error) {
	var q question
	if err := delta.UnmarshalRecord(b, &q); err != nil {
		return question{}, fmt.Errorf("%w question: %w", errUnreadable, err)
	}
	if err := checkRun(q.Run); err != nil {
		return question{}, fmt.Errorf("%w question: %w", errUnreadable, err)
	}
	return q, nil
}

// readAll reads to the end of the stream, at most limit bytes. Memory grows with what has really arrived.
func readAll(r io.Reader, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(b) > limit {
		return nil, fmt.Errorf("%w: more than %d bytes", errUnreadable, limit)
	}
	return b, nil
}

// handle answers one question, unless ctx ends first.
func (s *headSync) handle(ctx context.Context, st network.Stream) {
	defer context.AfterFunc(ctx, func() { st.Reset() })()
	st.SetDeadline(time.Now().Add(headPatience))
	if err := s.respond(st); err != nil {
		s.doubt(st.Conn().RemotePeer(), err)
		st.Reset()
		return
	}
	st.Close()
}

// doubt counts a question that broke the protocol, and says so once. It may have been meant for any run.
func (s *headSync) doubt(p peer.ID, err error) {
	if !errors.Is(err, errUnreadable) {
		return
	}
	s.stats.MessagesMalformed.Add(1)
	if s.junk.news(topic{peer: p}, "question refused: "+err.Error(), time.Now()) {
		s.log.Warn().Stringer("from", p).Err(err).Msg("question refused")
	}
}

func (s *headSync) respond(st network.Stream) error {
	p := st.Conn().RemotePeer()
	if !s.allowed.allow(p, time.Now()) {
		return errors.New("too many questions")
	}
	b, err := readAll(st, maxQuestion)
	if err != nil {
		return err
	}
	q, err := decodeQuestion(b)
	if err != nil {
		return err
	}
	r := s.runs[q.Run]
	if r == nil {
		return errors.New("a question about another run")
	}
	l := r.keeper.current()
	out, err := delta.MarshalRecord(answer{l.head.Raw, l.catalogue.Raw, s.records.known(p), uint64(s.now().UnixMilli())})
	if err != nil {
		return err
	}
	_, err = st.Write(out)
	return err
}

// lost forgets a peer that is gone.
func (s *headSync) lost(p peer.ID) {
	s.clocks.drop(p)
	for _, r := range s.runs {
		r.members.drop(p)
	}
}
