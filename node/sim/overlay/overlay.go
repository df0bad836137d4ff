package overlay

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Patch replaces one text in one source file.
type Patch struct {
	// File is absolute, relative to the folder that the go command runs in, or begins with GOROOT/.
	File string `json:"file"`
	// Old must occur exactly once in File, as it is after the patches before this one.
	Old string `json:"old"`
	// New takes its place.
	New string `json:"new"`
}

// Write puts the patched files and the overlay file that names them into dir, and returns the path of the latter, for
// go build -overlay. Relative files lie under root.
func Write(dir, root string, patches []Patch) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	texts, order, err := apply(root, patches)
	if err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	list := struct{ Replace map[string]string }{make(map[string]string)}
	for _, file := range order {
		// The name is that of the content: the go command's cache then knows an unchanged patch again.
		copied := filepath.Join(dir, fmt.Sprintf("%x-%s", sha256.Sum256([]byte(texts[file])), filepath.Base(file)))
		if err := os.WriteFile(copied, []byte(texts[file]), 0o600); err != nil {
			return "", fmt.Errorf("overlay: %w", err)
		}
		list.Replace[file] = copied
	}
	raw, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		return "", fmt.Errorf("overlay: %w", err)
	}
	return name, nil
}

// apply returns the patched text of every file that patches name, and the files in order of first mention.
func apply(root string, patches []Patch) (texts map[string]string, order []string, err error) {
	texts = make(map[string]string)
	for _, p := range patches {
		file, err := p.path(root)
		if err != nil {
			return nil, nil, err
		}
		text, seen := texts[file]
		if !seen {
			raw, err := os.ReadFile(file)
			if err != nil {
				return nil, nil, err
			}
			text = string(raw)
			order = append(order, file)
		}
		if n := strings.Count(text, p.Old); n != 1 || p.Old == "" {
			return nil, nil, fmt.Errorf("%s: the text to replace occurs %d times, not once; it was written for another version "+
				"of this file: correct the patch\n%s", p.File, n, p.Old)
		}
		texts[file] = strings.Replace(text, p.Old, p.New, 1)
	}
	return texts, order, nil
}

func (p Patch) path(root string) (string, error) {
	if name, ok := strings.CutPrefix(p.File, "GOROOT/"); ok {
		goroot, err := goEnv("GOROOT")
		return filepath.Join(goroot, name), err
	}
	if filepath.IsAbs(p.File) {
		return filepath.Clean(p.File), nil
	}
	return filepath.Abs(filepath.Join(root, p.File))
}

// Load reads patches from a JSON file: a list of objects with file, old and new.
func Load(name string) ([]Patch, error) {
	raw, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	var patches []Patch
	if err := json.Unmarshal(raw, &patches); err != nil {
		return nil, fmt.Errorf("overlay: %s: %w; want a list of {\"file\", \"old\", \"new\"}", name, err)
	}
	return patches, nil
}
