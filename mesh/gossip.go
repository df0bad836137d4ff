package mesh

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/rs/zerolog"
)

// gossip spreads announcements. It is a hint only: gossipsub gives late joiners nothing and drops under load, so heads
// are also asked for; see headSync.
type gossip struct {
	self   peer.ID
	topic  *pubsub.Topic
	sub    *pubsub.Subscription
	keeper *keeper
	ask    func(peer.ID)        // for the catalogue of a head that came without
	cut    func(peer.ID, error) // off the network
	junk   *ration              // refused announcements of peers
}

// An honest peer passes on what this node refuses when the two have other lists of publishers, once a head. More than
// that is a flood: each message costs a check, and memory for as long as gossipsub remembers it.
const (
	junkRate  = 1
	junkBurst = 32
	seenFor   = 30 * time.Second // several times what gossip takes to reach everybody
)

var errFlood = errors.New("a flood of announcements that are none")

// gossipFrame bounds what gossipsub reads at once. Twice our own bound, so that a message somewhat too large is refused
// and counted, while a far larger one costs its sender the stream.
const gossipFrame = 2 * maxAnnouncement

// join subscribes to the run's topic; ctx ends it. A host can serve one run this way.
func (g *gossip) join(ctx context.Context, h host.Host, run string, log zerolog.Logger) error {
	name := "/sparsecast/heads/1/" + run
	ps, err := pubsub.NewGossipSub(ctx, h, gossipOptions(name, log)...)
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	g.self = h.ID()
	// Inline: a queue of its own would let two heads overtake one another, and there is one at a time anyway.
	if err := ps.RegisterTopicValidator(name, g.validate, pubsub.WithValidatorInline(true)); err != nil {
		return fmt.Errorf("gossip: validator: %w", err)
	}
	if g.topic, err = ps.Join(name); err != nil {
		return fmt.Errorf("gossip: join: %w", err)
	}
	if g.sub, err = g.topic.Subscribe(pubsub.WithBufferSize(gossipQueue)); err != nil {
		return fmt.Errorf("gossip: subscribe: %w", err)
	}
	return nil
}

// gossipQueue is the length of every queue: gossipsub's own 32 drop silently in a burst.
const gossipQueue = 256

func gossipOptions(topic string, log zerolog.Logger) []pubsub.Option {
	params := pubsub.DefaultGossipSubParams()
	params.D, params.Dlo, params.Dhi, params.Dout = 6, 4, 12, 2
	params.HeartbeatInterval = 700 * time.Millisecond
	params.HistoryLength, params.HistoryGossip = 10, 5
	return []pubsub.Option{
		pubsub.WithGossipSubParams(params),
		// The signature that counts is the publisher's, inside the message: whoever passes it on does not matter.
		pubsub.WithMessageSignaturePolicy(pubsub.StrictNoSign),
		pubsub.WithNoAuthor(),
		pubsub.WithMessageIdFn(contentID),
		pubsub.WithSeenMessagesTTL(seenFor),
		pubsub.WithFloodPublish(true),
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(topic), 16)),
		pubsub.WithMaxMessageSize(gossipFrame),
		pubsub.WithPeerOutboundQueueSize(gossipQueue),
		pubsub.WithValidateQueueSize(gossipQueue),
		pubsub.WithLogger(slog.New(bridge(log))),
	}
}

func contentID(m *pb.Message) string {
	sum := sha256.Sum256(m.GetData())
	return string(sum[:])
}

// validate adopts what a message brings before it is passed on, and passes on only what was news here.
func (g *gossip) validate(_ context.Context, from peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	if from == g.self {
		return pubsub.ValidationAccept // was adopted by Publish
	}
	result := g.take(from, m)
	if result == pubsub.ValidationReject && !g.junk.allow(from, time.Now()) {
		g.cut(from, errFlood)
	}
	return result
}

func (g *gossip) take(from peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	a, err := decodeAnnouncement(m.GetData())
	if err != nil {
		g.keeper.note(malformed, refusal{kind: "announcement", from: from, why: err})
		return pubsub.ValidationReject
	}
	hv, cv, err := g.keeper.take(from, a.Head, a.Catalogue)
	if err != nil {
		g.keeper.log.Error().Err(err).Msg("a new head was not adopted")
		return pubsub.ValidationIgnore
	}
	if hv == accepted && cv == absent {
		g.ask(from)
	}
	return relayed(hv, cv)
}

// relayed says whether an announcement is worth passing on. News in either half are; lies in either half are not.
func relayed(hv, cv verdict) pubsub.ValidationResult {
	switch {
	case hv >= forged || cv >= forged:
		return pubsub.ValidationReject
	case hv == accepted || cv == accepted:
		return pubsub.ValidationAccept
	}
	return pubsub.ValidationIgnore
}

// run drains the subscription, which gossipsub needs to keep this node subscribed. validate has done the work.
func (g *gossip) run(ctx context.Context) error {
	defer g.sub.Cancel()
	for {
		if _, err := g.sub.Next(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("gossip: %w", err)
		}
	}
}

// announce sends what is adopted to everyone in reach.
func (g *gossip) announce(ctx context.Context, l *latest) error {
	if l.head.Raw == nil {
		return nil
	}
	data, err := newAnnouncement(l).encode()
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	if err := g.topic.Publish(ctx, data); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("gossip: publish: %w", err)
	}
	return nil
}
