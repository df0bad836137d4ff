package mesh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/rs/zerolog"
	"github.com/sparsecast/sparsecast/delta"
)

// headProtocol asks a peer for the newest head. The asker writes one question and closes its side; the answer ends
// with the stream. There is no length on the wire to lie about: both sides read up to a bound.
const headProtocol protocol.ID = "/sparsecast/head/1"

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

// answer brings what the asked one has: signed records all, and each may be missing.
type answer struct {
	Head      []byte   `cbor:"0,keyasint,omitempty"`
	Catalogue []byte   `cbor:"1,keyasint,omitempty"`
	Records   [][]byte `cbor:"2,keyasint,omitempty"`
}

// headSync asks peers for heads and answers theirs.
type headSync struct {
	host    host.Host
	run     string
	keeper  *keeper
	records *records
	log     zerolog.Logger

	asks     *askQueue
	allowed  *ration // questions of peers
	handlers crew

	mu       sync.Mutex           // guards what follows
	partners map[peer.ID]struct{} // connected peers that answered, and so follow the same run
}

func newHeadSync(h host.Host, run string, k *keeper, r *records, log zerolog.Logger) *headSync {
	return &headSync{
		host: h, run: run, keeper: k, records: r, log: log,
		asks:     newAskQueue(),
		allowed:  newRation(askRate, askBurst),
		partners: make(map[peer.ID]struct{}),
	}
}

// request has p asked soon. It never blocks.
func (s *headSync) request(p peer.ID) { s.asks.add(p, time.Now()) }

// serve answers questions until ctx ends.
func (s *headSync) serve(ctx context.Context) error {
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

func (s *headSync) inquire(ctx context.Context, p peer.ID) {
	began := time.Now()
	err := s.ask(ctx, p)
	s.asks.ended(p, err != nil && time.Since(began) >= headSilence, time.Now())
	if err != nil && ctx.Err() == nil {
		s.log.Debug().Err(err).Stringer("peer", p).Msg("head not learnt")
	}
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

// ask puts the question to p and takes in what it answers.
func (s *headSync) ask(ctx context.Context, p peer.ID) error {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "ask for the head"), headPatience)
	defer cancel()
	a, err := s.exchange(ctx, p)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.partners[p] = struct{}{}
	s.mu.Unlock()
	if _, _, err := s.keeper.take(p, a.Head, a.Catalogue); err != nil {
		return err
	}
	s.records.learn(a.Records)
	return nil
}

// exchange opens a stream for one question and one answer. A stream that went well is closed and any other reset:
// to reset after closing would take back what is still on its way.
func (s *headSync) exchange(ctx context.Context, p peer.ID) (answer, error) {
	opening, cancel := context.WithTimeout(ctx, headSilence)
	defer cancel()
	st, err := s.host.NewStream(opening, p, headProtocol)
	if err != nil {
		return answer{}, fmt.Errorf("ask for the head: %w", err)
	}
	defer context.AfterFunc(ctx, func() { st.Reset() })()
	a, err := s.converse(st)
	if err != nil {
		st.Reset()
		return answer{}, s.distrust(p, fmt.Errorf("ask for the head: %w", err))
	}
	st.Close()
	return a, nil
}

func (s *headSync) converse(st network.Stream) (answer, error) {
	q, err := delta.MarshalRecord(question{s.run})
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

// distrust counts what broke the protocol; a peer that went away has not.
func (s *headSync) distrust(p peer.ID, err error) error {
	if errors.Is(err, errUnreadable) {
		s.keeper.note(malformed, refusal{kind: "message", from: p, why: err})
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
	if err := s.distrust(st.Conn().RemotePeer(), s.respond(st)); err != nil {
		st.Reset()
		return
	}
	st.Close()
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
	if q.Run != s.run {
		return errors.New("a question about another run")
	}
	l := s.keeper.current()
	out, err := delta.MarshalRecord(answer{l.head.Raw, l.catalogue.Raw, s.records.known(p)})
	if err != nil {
		return err
	}
	_, err = st.Write(out)
	return err
}

// lost forgets a peer that is gone.
func (s *headSync) lost(p peer.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.partners, p)
}

// followers returns the connected peers that follow the same run.
func (s *headSync) followers() []peer.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]peer.ID, 0, len(s.partners))
	for p := range s.partners {
		ids = append(ids, p)
	}
	return ids
}
