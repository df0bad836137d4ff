package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/sparsecast/sparsecast/node"
)

type nodeCmd struct {
	Config    string `short:"c" type:"path" default:"sparsecast.yaml" env:"SPARSECAST_CONFIG" placeholder:"FILE" help:"Configuration of this node."`
	Example   bool   `help:"Print a commented example configuration and exit."`
	StopOnEOF bool   `name:"stop-on-eof" hidden:"" help:"Stop when standard input ends; for parents that may be killed."`
}

// Help is shown by sparsecast node --help.
func (nodeCmd) Help() string {
	return `The node holds this host's part of a run until it is told to stop (SIGINT or SIGTERM).

  role: trainer   publishes what sparsecast publish hands it
  role: rollout   keeps the newest version in <data>/current, a directory that an engine can load
                  (of several runs, each in <data>/runs/<name>/current)
  role: relay     fetches and passes on, for clusters behind a slow link

Start from a commented example:

  sparsecast node --example > sparsecast.yaml
  sparsecast node --config sparsecast.yaml`
}

// Run starts the node and waits for its end.
func (c nodeCmd) Run(ctx context.Context) error {
	if c.Example {
		_, err := io.WriteString(os.Stdout, node.ExampleConfig)
		return err
	}
	cfg, err := node.LoadConfig(c.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: name another with --config FILE, or begin with: sparsecast node --example > sparsecast.yaml", err)
	}
	if err != nil {
		return err
	}
	log, err := node.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGHUP) // a node outlives the shell that started it; its lists are reread without being told
	if c.StopOnEOF {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		go func() { // ends with the process
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	n, err := node.New(cfg, log)
	if err != nil {
		return err
	}
	return errors.Join(n.Run(ctx), n.Close())
}
