package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sparsecast/sparsecast/node/api"
)

// Runs is part of api.Backend.
func (n *Node) Runs(context.Context) api.RunList {
	list := api.RunList{
		ID: n.host.ID().String(), Role: string(n.cfg.Role), Cluster: n.cfg.Cluster, Runs: make([]api.RunInfo, len(n.parts)),
	}
	problems := n.mesh.Problems()
	list.Problems = problemsOf("", problems)
	for i, p := range n.parts {
		list.Runs[i] = p.info(problems)
	}
	return list
}

// In is part of api.Backend.
func (n *Node) In(run string) (api.Run, error) {
	names := strings.Join(n.runNames(), ", ")
	if run == "" && len(n.parts) > 1 {
		return nil, api.NewError(http.StatusBadRequest, errors.New("this node takes part in several runs"),
			"say which is meant with --run (in the API ?run=): "+names)
	}
	i := slices.IndexFunc(n.parts, func(p *part) bool { return run == "" || p.settings.Name == run })
	if i < 0 {
		return nil, api.NewError(http.StatusNotFound, fmt.Errorf("this node takes no part in run %q", run), "its runs are: "+names)
	}
	return n.parts[i], nil
}
