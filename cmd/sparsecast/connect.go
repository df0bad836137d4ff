package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/sparsecast/sparsecast/node"
	"github.com/sparsecast/sparsecast/node/api"
)

// connectFlags say which node a command talks to.
type connectFlags struct {
	Config string `short:"c" type:"path" default:"sparsecast.yaml" env:"SPARSECAST_CONFIG" placeholder:"FILE" help:"Configuration of the node to talk to; its api and data say how."`
	API    string `name:"api" env:"SPARSECAST_API" placeholder:"ADDR" help:"Talk to this address instead: unix:/path/api.sock, or host:port."`
	Token  string `name:"token-file" type:"path" env:"SPARSECAST_TOKEN_FILE" placeholder:"FILE" help:"Bearer token for a host:port (api.token in the node's data directory)."`
}

// dial returns a client of the node's local API.
func (c connectFlags) dial() (*api.Client, error) {
	if c.API != "" {
		return api.Dial(c.API, c.Token)
	}
	cfg, err := node.LoadConfig(c.Config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: say which node: --config FILE (or SPARSECAST_CONFIG), or --api ADDR", err)
	}
	if err != nil {
		return nil, err
	}
	return api.Dial(cfg.API, cfg.TokenFile())
}
