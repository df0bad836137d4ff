package api

import (
	"context"

	"github.com/sparsecast/sparsecast/delta"
)

// Backend is the node behind the API. An error that is an *Error decides the status code and the hint by itself.
type Backend interface {
	// Status returns a snapshot; it must not wait for work in progress.
	Status(ctx context.Context) Status
	// Publish makes a checkpoint the newest version of the run. Only a trainer can.
	Publish(ctx context.Context, r PublishRequest) (PublishResult, error)
	// Pull waits until the version asked for, or a newer one, is ready here. A timeout is the end of ctx.
	Pull(ctx context.Context, r PullRequest) (PullResult, error)
}

// States of a node, in the order of an update.
const (
	StateStarting = "starting" // reading what is on disk
	StateWaiting  = "waiting"  // no version is known yet
	StateFetching = "fetching" // chunks of a newer version are on their way
	StateApplying = "applying" // the idle slot is being brought up
	StateReady    = "ready"    // the newest known version is served
	StateError    = "error"    // see Status.Error
)

// MaxHistory is how many versions Status.History holds at most.
const MaxHistory = 256

// Status is what a node says about itself.
type Status struct {
	ID      string   `json:"id"`              // peer ID
	Role    string   `json:"role"`            // trainer, rollout or relay
	Run     string   `json:"run"`             // name of the training run
	Cluster string   `json:"cluster"`         // label of the nodes with fast links to this one
	Addrs   []string `json:"addrs"`           // multiaddrs with /p2p/ID that others can dial
	State   string   `json:"state"`           // one of the State constants
	Error   string   `json:"error,omitempty"` // why State is error

	Problems []string `json:"problems"` // what stands in the way of following, in words

	Latest   *VersionInfo `json:"latest,omitempty"`   // newest version heard of
	Served   *VersionInfo `json:"served,omitempty"`   // version under Path
	Path     string       `json:"path,omitempty"`     // directory that the engine should read
	Progress *Progress    `json:"progress,omitempty"` // of the version being brought here

	History   []VersionInfo     `json:"history"`            // the last versions, oldest first, at most MaxHistory
	Peers     []PeerInfo        `json:"peers"`              // connected now
	Counters  map[string]uint64 `json:"counters"`           // since the start; they only grow
	SentBytes map[string]uint64 `json:"sent_bytes_by_role"` // bytes of blocks sent, by the receiver's role
	StartedAt int64             `json:"started_at"`         // milliseconds since 1970
}

// VersionInfo describes one version of the run.
type VersionInfo struct {
	Epoch       uint64     `json:"epoch"`        // milliseconds since 1970 when its trainer started
	Number      uint64     `json:"number"`       // the trainer's step
	Root        delta.Root `json:"root"`         // hexadecimal
	Elements    uint64     `json:"elements"`     // in the whole state
	Changed     uint64     `json:"changed"`      // elements that differ from the version before
	Dense       uint64     `json:"dense_bytes"`  // bytes of the whole state
	Coded       uint64     `json:"coded_bytes"`  // bytes of the edge that leads here
	PublishedAt int64      `json:"published_at"` // milliseconds since 1970 by the trainer's clock
	ReadyAt     int64      `json:"ready_at"`     // milliseconds since 1970 by this host's clock, 0 until ready here
}

// Progress is how far the fetch of a version has come.
type Progress struct {
	Version     VersionInfo `json:"version"`
	ChunksDone  int         `json:"chunks_done"`
	ChunksTotal int         `json:"chunks_total"`
	Bytes       uint64      `json:"bytes"` // of code that are here
}

// PeerInfo describes one connected peer.
type PeerInfo struct {
	ID       string  `json:"id"`
	Role     string  `json:"role"`    // empty until the peer has said it
	Cluster  string  `json:"cluster"` // empty until the peer has said it
	Addr     string  `json:"addr"`    // multiaddr of the connection
	RTT      float64 `json:"rtt_ms"`  // milliseconds, 0 when unknown
	Sent     uint64  `json:"sent_bytes"`
	Received uint64  `json:"received_bytes"`
}

// PublishRequest asks a trainer to publish the checkpoint under Path.
type PublishRequest struct {
	Path   string  `json:"path"`             // absolute path of a safetensors file, or of a directory with them
	Number *uint64 `json:"number,omitempty"` // the trainer's step; the last one plus 1 when absent
	Full   bool    `json:"full,omitempty"`   // offer a full copy too, for hosts that deltas cannot lead here
}

// PublishResult tells what was published.
type PublishResult struct {
	VersionInfo
	Seconds float64 `json:"seconds"` // from the request until the head was sent
}

// PullRequest asks for a version to be ready on this host.
type PullRequest struct {
	Epoch          *uint64 `json:"epoch,omitempty"`  // of the step asked for; without it, of the newest version heard of
	Number         *uint64 `json:"number,omitempty"` // at least this step; the newest known when absent
	TimeoutSeconds float64 `json:"timeout_seconds"`  // 0 waits as long as the caller stays connected
}

// PullResult tells what is ready.
type PullResult struct {
	Version VersionInfo `json:"version"`
	Path    string      `json:"path"` // directory with the weights
}
