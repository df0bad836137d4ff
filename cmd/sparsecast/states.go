package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/api"
)

// namedStates reads checkpoints as a command line names them: one without a name, or several states each as NAME=PATH.
func namedStates(args []string) (map[string]string, error) {
	states := make(map[string]string)
	for _, arg := range args {
		name, path, named := stateArg(arg)
		if !named && len(args) > 1 {
			return nil, fmt.Errorf("%s has no name: with several checkpoints name each, as policy=/ckpt/policy draft=/ckpt/draft", arg)
		}
		if named && name == "" {
			return nil, fmt.Errorf("%s: a state without a name: write policy=%s, or the path alone for the only state", arg, path)
		}
		if _, twice := states[name]; twice {
			return nil, fmt.Errorf("state %s is named twice: give each a name of its own", name)
		}
		states[name] = path
	}
	return states, nil
}

// stateArg reads NAME=PATH. What is there under its whole name, or has a slash before the sign, is a path with that sign.
func stateArg(arg string) (name, path string, named bool) {
	name, path, named = strings.Cut(arg, "=")
	if _, err := os.Stat(arg); !named || err == nil || strings.Contains(name, "/") {
		return "", arg, false
	}
	return name, path, true
}

// statesIn returns the checkpoints of a directory that holds no weights itself, but directories with those of one state
// each, as a slot with several states does. It is empty for any other path.
func statesIn(dir string) map[string]string {
	tree := os.DirFS(dir)
	if own, err := fs.Glob(tree, "*.safetensors"); err != nil || len(own) > 0 {
		return nil
	}
	weights, err := fs.Glob(tree, "*/*.safetensors")
	if err != nil {
		return nil
	}
	states := make(map[string]string)
	for _, file := range weights {
		if name := path.Dir(file); !strings.HasPrefix(name, ".") {
			states[name] = filepath.Join(dir, name)
		}
	}
	return states
}

// openOne opens a checkpoint for a command that works on one state at a time.
func openOne(arg string) (*delta.Checkpoint, error) {
	c, err := delta.OpenCheckpoint(arg)
	if err == nil {
		return c, nil
	}
	if _, path, named := stateArg(arg); named {
		return nil, api.NewError(0, err, "this command works on one state at a time, which needs no name: write "+path)
	}
	if names := slices.Sorted(maps.Keys(statesIn(arg))); len(names) > 0 {
		return nil, api.NewError(0, fmt.Errorf("%s holds several states (%s)", arg, strings.Join(names, ", ")),
			"this command works on one state at a time: name its directory, such as "+filepath.Join(arg, names[0]))
	}
	return nil, err
}
