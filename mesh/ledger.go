package mesh

import (
	"errors"
	"fmt"
	"io/fs"
)

// FS is the part of a file system that keeps what must survive. Names are relative, with forward slashes.
type FS interface {
	ReadFile(name string) ([]byte, error)     // fs.ErrNotExist when absent
	WriteFile(name string, data []byte) error // atomic, by rename; creates directories
	Sync(names ...string) error               // contents and directory entries are durable after
	Remove(name string) error                 // nil when absent
	List(dir string) ([]string, error)        // names below dir, in no order; none when it is absent
}

// Files of the ledger. Each holds one signed record, so that damage cannot go unseen.
const (
	headFile      = "head.signed"
	catalogueFile = "catalogue.signed"
	evidenceFile  = "conflict.signed"
)

// ledger keeps a book on disk. What it holds was accepted once, so only signatures are checked again, not clocks.
type ledger struct{ fs FS }

// load fills b with what was kept.
func (l ledger) load(b *book) error {
	raw, err := l.read(headFile)
	if err != nil {
		return err
	}
	if raw != nil {
		if b.head, err = openHead(raw, b.listed); err != nil {
			return damaged(headFile, err)
		}
		if err := belongs(headFile, b.head.Value.Run, b.run); err != nil {
			return err
		}
	}
	if raw, err = l.read(catalogueFile); err != nil {
		return err
	}
	if raw != nil {
		if b.catalogue, err = openCatalogue(raw, b.listed); err != nil {
			return damaged(catalogueFile, err)
		}
		if err := belongs(catalogueFile, b.catalogue.Value.Run, b.run); err != nil {
			return err
		}
	}
	if raw, err = l.read(evidenceFile); err != nil || raw == nil {
		return err
	}
	// A conflict signed by someone who is no longer a publisher no longer matters.
	if b.evidence, err = openHead(raw, b.listed); err != nil && !errors.Is(err, errForged) {
		return damaged(evidenceFile, err)
	}
	return nil
}

func (l ledger) read(name string) ([]byte, error) {
	raw, err := l.fs.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: read %s: %w", name, err)
	}
	return raw, nil
}

// save makes the given records durable; an empty one is left as it is.
func (l ledger) save(head, catalogue []byte) error {
	return l.write(map[string][]byte{headFile: head, catalogueFile: catalogue})
}

func (l ledger) saveEvidence(raw []byte) error {
	return l.write(map[string][]byte{evidenceFile: raw})
}

func (l ledger) write(files map[string][]byte) error {
	var names []string
	for name, data := range files {
		if len(data) == 0 {
			continue
		}
		if err := l.fs.WriteFile(name, data); err != nil {
			return fmt.Errorf("ledger: write %s: %w: free some space", name, err)
		}
		names = append(names, name)
	}
	if err := l.fs.Sync(names...); err != nil {
		return fmt.Errorf("ledger: sync: %w: free some space", err)
	}
	return nil
}

func damaged(name string, err error) error {
	return fmt.Errorf("ledger: %s: %w; if the publishers changed, restore the old list or delete the file; if it is damaged, delete it: "+
		"the node then asks its peers again, but no longer knows which versions it has already seen", name, err)
}

func belongs(name, got, want string) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("ledger: %s belongs to run %q, this node serves %q; give each run a directory of its own", name, got, want)
}
