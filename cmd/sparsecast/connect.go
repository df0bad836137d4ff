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
	Config string `short:"c" type:"path" default:"sparsecast.yaml" env:"SPARSECAST_CONFIG" placeholder:"FILE" help:"Configuration of the node to talk to; its api and data say how; sparsecast.yaml here when absent."`
	API    string `name:"api" env:"SPARSECAST_API" placeholder:"ADDR" help:"Talk to this address instead: unix:/path/api.sock, or host:port."`
	Token  string `name:"token-file" type:"path" env:"SPARSECAST_TOKEN_FILE" placeholder:"FILE" help:"Bearer token for a host:port (api.token in the node's data directory)."`
	Of     string `name:"run" env:"SPARSECAST_RUN" placeholder:"NAME" help:"Which run is meant, of a node that takes part in several."`
}

// dial returns a client of the node's local API, for the run that is meant.
func (c connectFlags) dial() (*api.Client, error) {
	address, token := c.API, c.Token
	if address == "" {
		cfg, err := node.LoadConfig(c.Config)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: say which node: --config FILE (or SPARSECAST_CONFIG), or --api ADDR", err)
		}
		if err != nil {
			return nil, err
		}
		address, token = cfg.API, cfg.TokenFile()
	}
	client, err := api.Dial(address, token)
	if err != nil {
		return nil, err
	}
	return client.In(c.Of), nil
}
