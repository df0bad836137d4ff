package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsecast/sparsecast/node/files"
)

// weightEndings are files beside the weights that are weights themselves, or lead to them.
var weightEndings = []string{".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pt", ".pth", ".gguf"}

// copySidecars puts what an engine loads beside the weights (config, tokenizer, ...) from the base checkpoint into
// both slots. Files are copied, never linked: the base may be somebody's cache.
func (s *slots) copySidecars() error {
	if s.base.path == "" || s.base.path != s.base.dir {
		return nil
	}
	entries, err := os.ReadDir(s.base.path)
	if err != nil {
		return fmt.Errorf("read base checkpoint: %w", err)
	}
	for _, e := range entries {
		if !isSidecar(s.base.path, e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(s.base.path, e.Name()))
		if err != nil {
			return fmt.Errorf("copy %s from the base checkpoint: %w", e.Name(), err)
		}
		for _, name := range slotNames {
			if err := s.dir.WriteFile("slots/"+name+"/"+e.Name(), b); err != nil {
				return fmt.Errorf("copy %s from the base checkpoint: %w", e.Name(), err)
			}
		}
	}
	return nil
}

func isSidecar(dir, name string) bool {
	if strings.HasPrefix(name, ".") || strings.Contains(name, "\\") {
		return false
	}
	for _, end := range weightEndings {
		if strings.HasSuffix(name, end) {
			return false
		}
	}
	info, err := os.Stat(filepath.Join(dir, name)) // through a symlink, as in a hub cache
	return err == nil && info.Mode().IsRegular() && info.Size() <= files.MaxFile
}
