// Command sparsecast keeps the weights of rollout workers equal to their trainer's, bit for bit: one binary a GPU
// host, a mesh between them, and only what changed on the wire.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/api"
)

// version is set by the build (see the Makefile).
var version = ""

// cli is the command line, a subcommand a field.
type cli struct {
	Demo    demoCmd    `cmd:"" help:"Show everything at work on this machine: a trainer and rollouts in processes of their own."`
	Node    nodeCmd    `cmd:"" help:"Run the node of this host."`
	Publish publishCmd `cmd:"" help:"Make a checkpoint the newest version (at the trainer's node)."`
	Pull    pullCmd    `cmd:"" help:"Wait until a version is ready on this host and print where."`
	Pin     pinCmd     `cmd:"" help:"Serve one version, forward or back, and stay there."`
	Unpin   unpinCmd   `cmd:"" help:"Follow the newest version again."`
	Confirm confirmCmd `cmd:"" help:"Tell the node that the engine has loaded a version."`
	Check   checkCmd   `cmd:"" help:"Read a node's copies of the weights, and repair what is damaged."`
	Status  statusCmd  `cmd:"" help:"Show what the node of this host serves, fetches and sends."`
	Diff    diffCmd    `cmd:"" help:"Write the delta between two checkpoints to a file."`
	Apply   applyCmd   `cmd:"" help:"Apply a delta file to a checkpoint."`
	Inspect inspectCmd `cmd:"" help:"Tell what a delta file or a checkpoint holds."`
	Verify  verifyCmd  `cmd:"" help:"Read every byte of a checkpoint and print its root."`
	Bench   benchCmd   `cmd:"" help:"Measure what sparsecast does on this machine."`
	Keygen  keygenCmd  `cmd:"" help:"Make the identity key of a node."`
}

const about = `sparsecast keeps rollout workers' weights equal to their trainer's, bit for bit, over slow and far links.

  see it work:    sparsecast demo
  set up a node:  sparsecast keygen node.key && sparsecast node --example > sparsecast.yaml
  start it:       sparsecast node --config sparsecast.yaml
  send weights:   sparsecast publish CHECKPOINT    (at the trainer)
  await them:     sparsecast pull                  (at a rollout; prints the directory to load)
  which build:    sparsecast --version`

// Exit codes beside 0 and those of a command line that cannot be read.
const (
	exitError   = 1
	exitTimeout = 124 // as of timeout(1)
)

func main() {
	os.Exit(untilSignal(func(ctx context.Context) int { return run(ctx, os.Args[1:]) }))
}

// untilSignal calls do with a context that SIGINT or SIGTERM ends. A second signal ends the process at once, in case
// that something does not heed the first.
func untilSignal(do func(context.Context) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return do(ctx)
}

// run parses args, does what they ask for and returns the exit code.
func run(ctx context.Context, args []string) int {
	if slices.Equal(args, []string{"--version"}) { // no flag of all commands: pull has one of that name
		fmt.Println(buildVersion())
		return 0
	}
	var c cli
	parser := kong.Must(&c, kong.Name("sparsecast"), kong.Description(about), kong.ShortUsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.BindTo(ctx, (*context.Context)(nil)))
	k, err := parser.Parse(args)
	if err != nil {
		parser.Stdout = parser.Stderr // usage after a slip is no result that a script may read
		parser.FatalIfErrorf(err)
	}
	err = delta.CheckKernel()
	if err == nil {
		err = k.Run()
	}
	if err != nil {
		explain(err)
		if isTimeout(err) {
			return exitTimeout
		}
		return exitError
	}
	return 0
}

// isTimeout tells whether the time that the user gave was not enough.
func isTimeout(err error) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == http.StatusGatewayTimeout || errors.Is(err, context.DeadlineExceeded)
}

// explain prints an error, and what to do about it where that is known.
func explain(err error) {
	fmt.Fprintln(os.Stderr, "sparsecast: error:", api.Words(err))
	var e *api.Error
	if errors.As(err, &e) && e.Hint != "" {
		fmt.Fprintln(os.Stderr, "hint:", e.Hint)
	}
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
