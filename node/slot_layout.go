package node

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/sparsecast/sparsecast/delta"
	"github.com/sparsecast/sparsecast/node/files"
)

// Weights lie in one file a state, under the name that loaders look for: those of adapters (PEFT) want another one than
// those of models. The state without a name lies in the directory of its slot, others in directories of their own there.
const (
	weightsFile   = "model.safetensors"
	adapterFile   = "adapter_model.safetensors"
	adapterConfig = "adapter_config.json"
)

var weightsNames = []string{weightsFile, adapterFile}

// layout says where the states of a slot lie.
func (s *slots) layout(sl slot, schema *delta.Schema, name func(dir string) string) paths {
	p := make(paths)
	for _, r := range schema.States() {
		dir := filepath.Join(sl.dir, r.Name)
		p[r.Name] = filepath.Join(dir, name(dir))
	}
	return p
}

// wanted returns the name that the weights in a directory should have: what lies beside them tells adapters.
func (s *slots) wanted(dir string) string {
	if _, err := s.dir.FS().Lstat(filepath.Join(dir, adapterConfig)); err == nil {
		return adapterFile
	}
	return weightsFile
}

// found returns the name that the weights in a directory have.
func (s *slots) found(dir string) string {
	if _, err := s.dir.FS().Lstat(filepath.Join(dir, adapterFile)); err == nil {
		return adapterFile
	}
	return weightsFile
}

// read opens what lies in a slot: the base as the configuration says, others under the schema that their marker names.
func (s *slots) read(sl slot) (*states, error) {
	if sl.name == "base" {
		return openStates(s.dir.FS(), sl.from, s.cut)
	}
	m, err := s.readMarker(sl.name)
	if files.MayPass(err) {
		return nil, err
	}
	if err != nil || m.Schema == nil {
		cut := s.cut
		if err == nil {
			cut = nil // just what the checkpoint tells
		}
		return openStates(s.dir.FS(), paths{"": filepath.Join(sl.dir, s.found(sl.dir))}, cut)
	}
	schema, err := delta.DecodeSchema(m.Schema)
	if err != nil {
		return nil, err
	}
	return openStatesUnder(s.dir.FS(), s.layout(sl, schema, s.found), func([]delta.StateTensors) (*delta.Schema, error) { return schema, nil })
}

// places returns the directory of a slot and those in it.
func (s *slots) places(sl slot) ([]string, error) {
	entries, err := s.dir.FS().ReadDir(sl.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	dirs := []string{sl.dir}
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(sl.dir, e.Name()))
		}
	}
	return dirs, err
}

// removeWeights removes the weights of a slot, or what has an ending behind their names.
func (s *slots) removeWeights(sl slot, ending string) error {
	dirs, err := s.places(sl)
	for _, dir := range dirs {
		for _, name := range weightsNames {
			path := filepath.Join(dir, name+ending)
			if _, e := s.dir.FS().Lstat(path); errors.Is(e, fs.ErrNotExist) {
				continue
			}
			err = errors.Join(err, s.dir.FS().RemoveAll(path))
		}
	}
	return err
}

// clear removes the weights of a slot, whatever somebody put in their place, and directories of states that schema
// has not.
func (s *slots) clear(sl slot, schema *delta.Schema) error {
	fsys := s.dir.FS()
	if info, err := fsys.Lstat(sl.dir); err == nil && !info.IsDir() {
		return fsys.RemoveAll(sl.dir)
	}
	if err := s.removeWeights(sl, ""); err != nil {
		return err
	}
	entries, err := fsys.ReadDir(sl.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	keep := make(map[string]bool)
	for _, r := range schema.States() {
		keep[r.Name] = true
	}
	for _, e := range entries {
		if e.IsDir() != keep[e.Name()] { // a file in place of a state, too
			if !e.IsDir() && !keep[e.Name()] {
				continue
			}
			err = errors.Join(err, fsys.RemoveAll(filepath.Join(sl.dir, e.Name())))
		}
	}
	return err
}

// baseDir returns the directory that an engine can load the base from. Engines load directories, and the one around a
// file may hold other weights, so a base of files or of several states gets a directory of links.
func (s *slots) baseDir(from paths) (string, error) {
	links := make(map[string]string) // by name
	for _, name := range from.names() {
		info, err := s.dir.FS().Stat(from[name])
		if err != nil {
			return "", fmt.Errorf("base checkpoint: %w: set base: to the checkpoint that every host starts from", inState(name, err))
		}
		at := "slots/base"
		if name != "" {
			at += "/" + name
		}
		switch {
		case !info.IsDir():
			file := weightsFile
			if filepath.Base(from[name]) == adapterFile {
				file = adapterFile
			}
			links[at+"/"+file] = from[name]
		case name == "":
			return from[name], nil
		default:
			links[at] = from[name]
		}
	}
	if err := s.link(links); err != nil {
		return "", fmt.Errorf("base checkpoint: %w", err)
	}
	return s.place.Path("slots/base"), nil
}

// link makes links, unless they are there. What was in their place before goes, so that none is made through another one.
func (s *slots) link(links map[string]string) error {
	there := true
	for name, target := range links {
		now, err := s.place.Readlink(name)
		there = there && err == nil && now == target
	}
	if there {
		return nil
	}
	if err := s.dir.FS().RemoveAll(s.place.Path("slots/base")); err != nil {
		return err
	}
	for name, target := range links {
		if err := s.place.Symlink(target, name); err != nil {
			return err
		}
	}
	return nil
}
