package api

import (
	"context"

	"github.com/sparsecast/sparsecast/delta"
)

// Backend is the node behind the API. An error that is an *Error decides the status code and the hint by itself.
type Backend interface {
	// Runs tells in short how the node and each of its runs do.
	Runs(ctx context.Context) RunList
	// In returns the node's part in a run; without a name, in the only one.
	In(run string) (Run, error)
}

// Run is the node's part in one run.
type Run interface {
	// Status returns a snapshot; it must not wait for work in progress.
	Status(ctx context.Context) Status
	// Publish makes a checkpoint the newest version of the run. Only a trainer can.
	Publish(ctx context.Context, r PublishRequest) (PublishResult, error)
	// Pull waits until the version asked for, or a newer one, is ready here. A timeout is the end of ctx.
	Pull(ctx context.Context, r PullRequest) (PullResult, error)
	// Pin makes the node serve one version, forward or back, and stay there. It does not wait for that.
	Pin(ctx context.Context, r VersionRequest) (PinResult, error)
	// Unpin makes the node follow the newest version again.
	Unpin(ctx context.Context) (PinResult, error)
	// Pinned tells what the node is pinned to.
	Pinned(ctx context.Context) (PinResult, error)
	// Check reads all copies of the weights, finds the blocks that are damaged, and repairs them.
	Check(ctx context.Context) (CheckResult, error)
	// Confirm tells that the engine has loaded a version, so that the slot served before it may be written again.
	Confirm(ctx context.Context, r VersionRequest) (ConfirmResult, error)
}

// States of a node, in the order of an update.
const (
	StateStarting = "starting" // reading what is on disk
	StateWaiting  = "waiting"  // no version is known yet, or the one pinned to is not published yet
	StateFetching = "fetching" // chunks of a newer version are on their way
	StateApplying = "applying" // the idle slot is being brought up
	StateReady    = "ready"    // the version that should be served is: the newest known, unless Status.Waiting says why not
	StateError    = "error"    // see Status.Error
)

// MaxHistory is how many versions Status.History holds at most.
const MaxHistory = 256

// Status is what a node says about itself and one of its runs.
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

	Pin           *Pin       `json:"pin,omitempty"`         // the version that this node stays at
	Unconfirmed   *VersionID `json:"unconfirmed,omitempty"` // served, and not yet confirmed by the engine (confirm: manual)
	Waiting       string     `json:"waiting,omitempty"`     // why the newest version is not brought up, in words
	Behind        *uint64    `json:"behind,omitempty"`      // numbers from Served to Latest; absent across epochs
	BehindSeconds float64    `json:"behind_seconds"`        // since a version newer than Served was first heard of, 0 without one

	CheckedAt      int64  `json:"checked_at,omitempty"` // when the copies of the weights were last read whole, milliseconds since 1970
	BlocksDamaged  uint64 `json:"blocks_damaged"`       // found in them since the start
	BlocksRepaired uint64 `json:"blocks_repaired"`      // of those, one by one

	Store Store            `json:"store"` // blocks on this host's disk, of all runs
	Offer map[string]Offer `json:"offer"` // edges of the newest catalogue, by kind: delta, reverse, base, anchor

	History   []VersionInfo     `json:"history"`            // the last versions, oldest first, at most MaxHistory
	Peers     []PeerInfo        `json:"peers"`              // connected now
	Counters  map[string]uint64 `json:"counters"`           // since the start; they only grow
	SentBytes map[string]uint64 `json:"sent_bytes_by_role"` // bytes of blocks sent, by the receiver's role
	StartedAt int64             `json:"started_at"`         // milliseconds since 1970
}

// RunInfo is the short of a run's Status.
type RunInfo struct {
	Run     string       `json:"run"`
	State   string       `json:"state"`             // one of the State constants
	Error   string       `json:"error,omitempty"`   // why State is error
	Waiting string       `json:"waiting,omitempty"` // why the newest version is not brought up
	Latest  *VersionInfo `json:"latest,omitempty"`  // newest version heard of
	Served  *VersionInfo `json:"served,omitempty"`  // version under Path
	Path    string       `json:"path,omitempty"`    // directory that the engine should read

	Problems      []string `json:"problems"`         // what stands in the way of following this run, in words
	Behind        *uint64  `json:"behind,omitempty"` // as in Status
	BehindSeconds float64  `json:"behind_seconds"`   // as in Status
}

// RunList is what the node takes part in.
type RunList struct {
	ID       string    `json:"id"`       // peer ID
	Role     string    `json:"role"`     // trainer, rollout or relay
	Cluster  string    `json:"cluster"`  // label of the nodes with fast links to this one
	Problems []string  `json:"problems"` // of the node, whichever the run
	Runs     []RunInfo `json:"runs"`
}

// Health is whether the node can do its work in a run or, when Runs is there, in all of its runs.
type Health struct {
	Healthy bool     `json:"healthy"`
	Role    string   `json:"role"`
	Run     string   `json:"run,omitempty"`
	State   string   `json:"state,omitempty"` // one of the State constants
	Error   string   `json:"error,omitempty"` // why State is error
	Runs    []Health `json:"runs,omitempty"`  // each of several
}

// Store is what a node's block store holds.
type Store struct {
	Blocks int    `json:"blocks"`
	Bytes  uint64 `json:"bytes"`
}

// Offer is what is on offer of one kind.
type Offer struct {
	Edges int    `json:"edges"`
	Bytes uint64 `json:"coded_bytes"`
}

// VersionID names one version of the run.
type VersionID struct {
	Epoch  uint64 `json:"epoch"`
	Number uint64 `json:"number"`
}

// ID returns the name of v.
func (v VersionInfo) ID() VersionID { return VersionID{v.Epoch, v.Number} }

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

// PublishRequest asks a trainer to publish the checkpoint under Path, or those under Paths as one version. With Full alone
// it asks for a full copy of the newest version to be offered.
type PublishRequest struct {
	Path   string            `json:"path,omitempty"`   // absolute path of a safetensors file, or of a directory with them
	Paths  map[string]string `json:"paths,omitempty"`  // instead, of several states (policy, draft, adapter) by their names
	Number *uint64           `json:"number,omitempty"` // the trainer's step; the last one plus 1 when absent
	Full   bool              `json:"full,omitempty"`   // offer a full copy too, for hosts that deltas cannot lead here
	// NewEpoch begins a new epoch, in which numbers may be lower: after going back to an older checkpoint, or to take
	// over from another publisher.
	NewEpoch bool `json:"new_epoch,omitempty"`
}

// PublishResult tells what was published.
type PublishResult struct {
	VersionInfo
	Full    uint64  `json:"full_bytes,omitempty"`        // coded bytes of the full copy that was made with it, if one was
	Again   bool    `json:"already_published,omitempty"` // it was before: the newest version has that number and these weights
	Warning string  `json:"warning,omitempty"`           // why it is sent whole where a delta was likely meant, in words
	Seconds float64 `json:"seconds"`                     // from the request until the head was sent
}

// PullRequest asks for a version to be ready on this host.
type PullRequest struct {
	Epoch          *uint64 `json:"epoch,omitempty"`  // of the step asked for; without it, of the newest version heard of
	Number         *uint64 `json:"number,omitempty"` // at least this step; what the node should serve now when absent
	Exact          bool    `json:"exact,omitempty"`  // just this step, forward or back: pins the node to it
	TimeoutSeconds float64 `json:"timeout_seconds"`  // 0 waits as long as the caller stays connected
}

// PullResult tells what is ready.
type PullResult struct {
	Version VersionInfo `json:"version"`
	Path    string      `json:"path"`          // directory with the weights
	Pin     *Pin        `json:"pin,omitempty"` // the version that the node stays at
}

// VersionRequest names the version to pin or to confirm.
type VersionRequest struct {
	Number *uint64 `json:"number"`
	Epoch  *uint64 `json:"epoch,omitempty"` // without it, of the newest version of that number (pin) or of the one served (confirm)
}

// Pin is the one version that a node stays at.
type Pin struct {
	Number uint64     `json:"number"`
	Epoch  uint64     `json:"epoch,omitempty"` // 0 while it was not given and no version of that number is known
	Root   delta.Root `json:"root,omitzero"`   // absent while not known
	Since  int64      `json:"since"`           // milliseconds since 1970 when it was pinned
}

// PinResult tells what a node is pinned to.
type PinResult struct {
	Pin     *Pin         `json:"pin"`               // null when it follows the newest version
	Served  *VersionInfo `json:"served"`            // null when nothing is
	Problem string       `json:"problem,omitempty"` // why the pinned version cannot be had now, and what there is
}

// CheckResult tells what reading all copies of the weights found.
type CheckResult struct {
	Slots []CheckedSlot `json:"slots"`
}

// CheckedSlot is one copy of the weights that was read whole.
type CheckedSlot struct {
	Slot     string     `json:"slot"` // a, b or base
	Path     string     `json:"path"`
	Root     delta.Root `json:"root"` // of what it should hold
	Damaged  bool       `json:"damaged"`
	Blocks   int        `json:"blocks"`   // that are damaged; 0 when that is not known
	Repaired bool       `json:"repaired"` // all of it holds what it should again
}

// ConfirmResult tells what is confirmed.
type ConfirmResult struct {
	Served VersionInfo `json:"served"`
}
