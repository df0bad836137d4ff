package node

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/mesh"
)

// RunConfig is this node's part in one of several runs.
type RunConfig struct {
	// Name names the run. 1 to 64 letters, digits, dots, dashes and underscores.
	Name       string `yaml:"name"`
	RunOptions `yaml:",inline"`
}

// RunOptions say what this node does in a run. Start from DefaultRunOptions.
type RunOptions struct {
	// Publishers are the peer IDs whose heads are believed. A trainer always believes itself; every other role needs
	// at least one.
	Publishers []string `yaml:"publishers"`

	// Base is the checkpoint that every host already has, version 0: a safetensors file or a directory with them.
	// With it no full copy ever moves over the network; without it a node starts from an anchor.
	Base string `yaml:"base"`

	// Bases are the checkpoints that every host already has of a run with several states (policy, draft model, adapter),
	// by the state, instead of Base. They must be the states that the trainer publishes, or one full copy moves.
	Bases map[string]string `yaml:"bases"`

	// GroupBy says what is coded apart from the rest, for hosts that follow only a part of the weights: none, or layer.
	// A layer then has chunks of its own, which costs some bytes and chunks; it must be the same on all hosts with Base.
	GroupBy string `yaml:"group_by"`

	// Keep is how many versions' deltas stay on offer. More lets a host that was away longer catch up by deltas, and
	// takes their coded bytes on disk; 1 to 4096. What newcomers need to get from Base, or from nothing, to the newest
	// version stays beyond that.
	Keep int `yaml:"keep"`

	// Slots is how many copies of the weights a rollout keeps beside Base: 2, one of which is served while the other becomes
	// the next version, or 1 on hosts that are short of memory. The one is changed where it lies, and nothing is served
	// meanwhile: current is gone until the new version is whole, and with confirm: manual no update begins before the
	// engine has loaded the one before. What leads back is kept, see Reverse. A trainer needs 2.
	Slots int `yaml:"slots"`

	// MaxLag is by how many numbers a rollout may serve an older version than the newest of its epoch. It moves only
	// when the newest is further ahead, and then to the newest, so an engine pauses and switches once for several
	// versions; the bytes to fetch stay the sum of theirs, unless the trainer offers a shortcut. Samples are as much
	// staler. A pull that asks for a newer version is served at once all the same. 0 follows every version; to 4096.
	MaxLag int `yaml:"max_lag"`

	// Confirm says when the slot that was served before may be written again: auto, as soon as there is a newer
	// version, or manual, once the engine has said that it has loaded the version served now (sparsecast confirm). Manual
	// protects engines that open their files late or load slowly; until the confirm newer versions are fetched and
	// wait.
	Confirm string `yaml:"confirm"`

	// KeepBytes bounds the coded bytes of all that is on offer, such as 20GB or 512MiB; 0 is no limit. The oldest goes
	// first, and what newcomers need stays even when that alone is more, which status then tells. What has left the offer
	// while a slow peer fetches it may take as much again on disk.
	KeepBytes string `yaml:"keep_bytes"`

	// Reverse is for how many of the newest versions a trainer also offers the way back, so that hosts can return to an
	// older version cheaply. Each costs one more pass over the weights, in the background, and about as many bytes as
	// the version itself; 0 to 4096. A rollout with one slot keeps for itself the way back from as many updates, coded
	// while nothing is served: 0 makes updates quicker, and leaves going back to what is on offer.
	Reverse int `yaml:"reverse"`

	// Anchors says when a trainer offers full copies, from which a host without Base starts: always, never, or auto,
	// which is where there is no usable Base, and, once there was one (publish --full), from then on. One costs its
	// coded size on disk and a pass over the weights in the background whenever it is made anew.
	Anchors string `yaml:"anchors"`

	// AnchorSlack is how much dearer than a new shortcut (from Base, or an anchor) the way of a newcomer to the newest
	// version may get before a trainer makes a new one: 0.5 lets it cost half as much again. Less makes newcomers
	// quicker and shortcuts more frequent; 0.1 to 100.
	AnchorSlack float64 `yaml:"anchor_slack"`
}

// Values of RunOptions.Confirm.
const (
	confirmAuto   = "auto"
	confirmManual = "manual"
)

// Values of RunOptions.GroupBy.
const (
	groupNone  = "none"
	groupLayer = "layer"
)

// Values of RunOptions.Anchors.
const (
	anchorsAuto   = "auto"
	anchorsAlways = "always"
	anchorsNever  = "never"
)

// defaultRun is the name of the run of a node that says none.
const defaultRun = "default"

// maxRuns bounds the runs of one node, as package mesh does.
const maxRuns = 64

// DefaultRunOptions returns the defaults. Publishers are still to be chosen, except on a trainer.
func DefaultRunOptions() RunOptions {
	return RunOptions{
		GroupBy: groupNone, Keep: 32, Slots: 2, Confirm: confirmAuto, Reverse: 8, Anchors: anchorsAuto, KeepBytes: "0", AnchorSlack: 0.5,
	}
}

// UnmarshalYAML decodes a run over the defaults.
func (r *RunConfig) UnmarshalYAML(decode func(any) error) error {
	type plain RunConfig
	p := plain{RunOptions: DefaultRunOptions()}
	if err := decode(&p); err != nil {
		return err
	}
	*r = RunConfig(p)
	return nil
}

// AllRuns returns the runs that this node takes part in: those of Runs, or the one beside it.
func (c *Config) AllRuns() []RunConfig {
	if len(c.Runs) > 0 {
		return c.Runs
	}
	return []RunConfig{{Name: c.Run, RunOptions: c.RunOptions}}
}

// checkRuns looks at each run, wherever it stands.
func (c *Config) checkRuns() error {
	if c.Runs == nil {
		return c.AllRuns()[0].check("", "run", c.Role)
	}
	if err := c.checkMixed(); err != nil {
		return err
	}
	if n := len(c.Runs); n == 0 || n > maxRuns {
		return mistake("runs", fmt.Errorf("%d runs", n), fmt.Sprintf("list 1 to %d, or leave the field out and write run: for one", maxRuns))
	}
	for i, r := range c.Runs {
		at := fmt.Sprintf("runs[%d].", i)
		if err := r.check(at, "name", c.Role); err != nil {
			return err
		}
		if j := slices.IndexFunc(c.Runs[:i], func(o RunConfig) bool { return strings.EqualFold(o.Name, r.Name) }); j >= 0 {
			if c.Runs[j].Name == r.Name {
				return mistake(at+"name", fmt.Errorf("run %q is listed twice", r.Name), "list each run once")
			}
			return mistake(at+"name", fmt.Errorf("%q and %q differ only in large and small letters", c.Runs[j].Name, r.Name),
				"rename one of the runs: some disks do not tell them apart")
		}
	}
	return nil
}

// checkMixed refuses what is said of one run beside a list of several: for which of them would it hold?
func (c *Config) checkMixed() error {
	both := func(field string) error {
		return mistake(field, errors.New("said beside the list of runs"), "with runs: each run says it for itself, so move it there")
	}
	if c.Run != defaultRun {
		return both("run")
	}
	said, defaults := reflect.ValueOf(c.RunOptions), reflect.ValueOf(DefaultRunOptions())
	for i := range said.NumField() {
		if !reflect.DeepEqual(said.Field(i).Interface(), defaults.Field(i).Interface()) {
			return both(said.Type().Field(i).Tag.Get("yaml"))
		}
	}
	return nil
}

// check returns the first mistake in a run, whose fields stand at a place such as runs[0]. in the file.
func (r RunConfig) check(at, name string, role mesh.Role) error {
	if err := checkName(at+name, r.Name); err != nil {
		return err
	}
	if err := checkChoices(at, []choice{
		{"group_by", r.GroupBy, []string{groupNone, groupLayer}},
		{"confirm", r.Confirm, []string{confirmAuto, confirmManual}},
		{"anchors", r.Anchors, []string{anchorsAuto, anchorsAlways, anchorsNever}},
	}); err != nil {
		return err
	}
	if len(r.Publishers) == 0 && role != mesh.RoleTrainer {
		return mistake(at+"publishers", errors.New("no publisher, so no head would be believed"),
			"list the trainer's peer ID; sparsecast status prints it there")
	}
	if _, err := r.publisherIDs(at); err != nil {
		return err
	}
	if err := r.checkBases(at); err != nil {
		return err
	}
	if r.Slots == 1 && role == mesh.RoleTrainer {
		return mistake(at+"slots", errors.New("a trainer needs two copies: the version published last, and the next one"), "leave the field out; put them on disk with slots_dir: where memory is short")
	}
	return r.checkRanges(at)
}

func (r RunConfig) checkBases(at string) error {
	if r.Base != "" && len(r.Bases) > 0 {
		return mistake(at+"bases", errors.New("said beside base"), "write base: for one state without a name, or bases: for states by name")
	}
	if _, unnamed := r.Bases[""]; unnamed {
		return mistake(at+"bases", errors.New("a state without a name"), "write base: for a single state")
	}
	if err := paths(r.Bases).check(); err != nil {
		return mistake(at+"bases", err, "write each as a name and a path, as policy: /models/policy")
	}
	return nil
}

// basePaths returns where the base checkpoint lies, none without one.
func (r RunOptions) basePaths() paths {
	if r.Base != "" {
		return paths{"": r.Base}
	}
	return r.Bases
}

// cutting says how tensors are cut and grouped.
func (r RunOptions) cutting() delta.Cutting {
	if r.GroupBy == groupLayer {
		return delta.GroupByLayer
	}
	return nil
}

// resolve makes relative paths relative to dir.
func (r *RunOptions) resolve(dir string) {
	r.Base = within(dir, r.Base)
	for name, path := range r.Bases {
		r.Bases[name] = within(dir, path)
	}
}

func (r RunConfig) checkRanges(at string) error {
	if r.Keep < 1 || r.Keep > maxKeep {
		return mistake(at+"keep", fmt.Errorf("%d versions", r.Keep), fmt.Sprintf("use 1 to %d", maxKeep))
	}
	if r.Slots != 1 && r.Slots != 2 {
		return mistake(at+"slots", fmt.Errorf("%d copies", r.Slots), "use 2, or 1 on hosts short of memory, where nothing is served during updates")
	}
	if r.MaxLag < 0 || r.MaxLag > maxLag {
		return mistake(at+"max_lag", fmt.Errorf("%d versions", r.MaxLag), fmt.Sprintf("use 0 (follow every version) to %d", maxLag))
	}
	if _, err := r.keepLimit(at); err != nil {
		return err
	}
	if r.Reverse < 0 || r.Reverse > maxKeep {
		return mistake(at+"reverse", fmt.Errorf("%d versions", r.Reverse), fmt.Sprintf("use 0 to %d", maxKeep))
	}
	if !(r.AnchorSlack >= minSlack && r.AnchorSlack <= maxSlack) { // NaN is no slack either
		return mistake(at+"anchor_slack", fmt.Errorf("%v", r.AnchorSlack), fmt.Sprintf("use %v to %v", minSlack, maxSlack))
	}
	return nil
}

// keepLimit returns KeepBytes, parsed.
func (r RunOptions) keepLimit(at string) (uint64, error) {
	n, err := humanize.ParseBytes(r.KeepBytes)
	if err != nil {
		return 0, mistake(at+"keep_bytes", fmt.Errorf("%q is no size", r.KeepBytes), "write it as 20GB or 512MiB, or 0 for no limit")
	}
	return n, nil
}

// publisherIDs returns Publishers, parsed.
func (r RunOptions) publisherIDs(at string) ([]peer.ID, error) {
	return parseList(at+"publishers", r.Publishers, peer.Decode, "a peer ID looks like 12D3KooW...; sparsecast status prints it")
}
