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

// gossip spreads announcements, on one channel a run. It is a hint only: gossipsub gives late joiners nothing and drops
// under load, so heads are also asked for; see headSync.
type gossip struct {
	self peer.ID
	ps   *pubsub.PubSub
	ask  func(peer.ID)        // for the catalogue of a head that came without
	cut  func(peer.ID, error) // off the network
	junk *ration              // refused announcements of peers
}

// channel is the gossip of one run.
type channel struct {
	*gossip
	topic  *pubsub.Topic
	sub    *pubsub.Subscription
	keeper *keeper
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

// topicOf returns the name of a run's topic.
func topicOf(run string) string { return "/sparsecast/heads/1/" + run }

// start prepares for the gossip of the runs, which are then joined; ctx ends it.
func (g *gossip) start(ctx context.Context, h host.Host, runs []string, log zerolog.Logger) error {
	topics := make([]string, len(runs))
	for i, run := range runs {
		topics[i] = topicOf(run)
	}
	var err error
	if g.ps, err = pubsub.NewGossipSub(ctx, h, gossipOptions(topics, log)...); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	return nil
}

// join subscribes to a run's topic. What it brings goes to k.
func (g *gossip) join(run string, k *keeper) (*channel, error) {
	name, c := topicOf(run), &channel{gossip: g, keeper: k}
	// Inline: a queue of its own would let two heads overtake one another, and there is one at a time anyway.
	err := g.ps.RegisterTopicValidator(name, c.validate, pubsub.WithValidatorInline(true))
	if err != nil {
		return nil, fmt.Errorf("gossip: validator: %w", err)
	}
	if c.topic, err = g.ps.Join(name); err != nil {
		return nil, fmt.Errorf("gossip: join: %w", err)
	}
	if c.sub, err = c.topic.Subscribe(pubsub.WithBufferSize(gossipQueue)); err != nil {
		return nil, fmt.Errorf("gossip: subscribe: %w", err)
	}
	return c, nil
}

// gossipQueue is the length of every queue: gossipsub's own 32 drop silently in a burst.
const gossipQueue = 256

func gossipOptions(topics []string, log zerolog.Logger) []pubsub.Option {
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
		pubsub.WithSubscriptionFilter(pubsub.WrapLimitSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(topics...), 2*maxRuns)),
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
func (c *channel) validate(_ context.Context, from peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	if from == c.self {
		return pubsub.ValidationAccept // was adopted by Publish
	}
	result := c.take(from, m)
	if result == pubsub.ValidationReject && !c.junk.allow(from, time.Now()) {
		c.cut(from, errFlood)
	}
	return result
}

func (c *channel) take(from peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	a, err := decodeAnnouncement(m.GetData())
	if err != nil {
		c.keeper.note(malformed, refusal{kind: "announcement", from: from, why: err})
		return pubsub.ValidationReject
	}
	hv, cv, err := c.keeper.take(from, a.Head, a.Catalogue)
	if err != nil {
		c.keeper.log.Error().Err(err).Msg("a new head was not adopted")
		return pubsub.ValidationIgnore
	}
	if hv == accepted && cv == absent {
		c.ask(from)
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
func (c *channel) run(ctx context.Context) error {
	defer c.sub.Cancel()
	for {
		if _, err := c.sub.Next(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("gossip: %w", err)
		}
	}
}

// announce sends what is adopted to everyone in reach.
func (c *channel) announce(ctx context.Context, l *latest) error {
	if l.head.Raw == nil {
		return nil
	}
	data, err := newAnnouncement(l).encode()
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	if err := c.topic.Publish(ctx, data); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("gossip: publish: %w", err)
	}
	return nil
}
