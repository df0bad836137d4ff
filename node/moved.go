package node

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/sparsecast/sparsecast/mesh"
	"github.com/sparsecast/sparsecast/node/files"
)

// homeFiles are the names of what belongs to a run in its home.
var homeFiles = slices.Concat(mesh.LedgerFiles, []string{
	servedFile, pinFile, confirmedFile, waysFile, unfinishedFile, shelfFile, backFile, inflightFile, "current", "slots", sidecarsDir,
})

// checkMoved refuses to begin a run anew of which this node knows already: a configuration with a list of runs has what
// belongs to each in a directory of its own, one without has it in the data directory itself. To begin anew would be to
// forget which versions were seen, and to fetch all again.
func (n *Node) checkMoved(run string) error {
	below := path.Join("runs", run)
	here, there := ".", below
	known := func() (bool, error) { return isThere(n.dir, path.Join(below, mesh.LedgerFiles[0])) }
	if len(n.cfg.Runs) > 0 {
		here, there = below, "."
		known = func() (bool, error) {
			kept, err := mesh.KeptRun(n.dir)
			if err != nil {
				return false, fmt.Errorf("%s: %w", n.dir.Path("."), err)
			}
			return kept == run, nil
		}
	}
	if begun, err := isThere(n.dir, path.Join(here, mesh.LedgerFiles[0])); err != nil || begun {
		return err
	}
	if moved, err := known(); err != nil || !moved {
		return err
	}
	var names []string
	for _, name := range homeFiles {
		if _, err := n.dir.FS().Lstat(n.dir.Path(path.Join(there, name))); err == nil {
			names = append(names, path.Join(there, name))
		}
	}
	return fmt.Errorf("what is known of run %s lies in %s, where the configuration had it before, and belongs into %s now: move it: cd %s && mkdir -p %s && mv %s %s",
		run, n.dir.Path(there), n.dir.Path(here), shellWord(n.dir.Path(".")), here, strings.Join(names, " "), here)
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9/._+,:@%-]+$`)

// shellWord returns s as a shell reads it, in single quotes where it needs any: double ones are escaped by logs, and
// what is to be pasted would not be a command any more.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func isThere(dir *files.Dir, name string) (bool, error) {
	_, err := dir.Size(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
