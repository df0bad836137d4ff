package mesh

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/libp2p/go-libp2p/core/peer"
)

// FS is the part of a file system that keeps what must survive. Names are relative, with forward slashes.
type FS interface {
	ReadFile(name string) ([]byte, error)     // fs.ErrNotExist when absent
	WriteFile(name string, data []byte) error // atomic, by rename; creates directories
	Sync(names ...string) error               // contents and directory entries are durable after
	// WriteDurable is WriteFile and durable after. Whatever fails, or when the power does in the midst of it, name holds
	// the old content or the new, which WriteFile followed by Sync does not promise.
	WriteDurable(name string, data []byte) error
	Remove(name string) error          // nil when absent
	List(dir string) ([]string, error) // names below dir, in no order; none when it is absent
	Size(name string) (int64, error)   // in bytes; fs.ErrNotExist when absent
}

// Files of the ledger. Each holds one signed record, so that damage cannot go unseen.
const (
	headFile      = "head.signed"
	catalogueFile = "catalogue.signed"
	evidenceFile  = "conflict.signed"
	againstFile   = "conflict-first.signed" // what that contradicts
)

// LedgerFiles are the names of all files that Join keeps in the directory of a run.
var LedgerFiles = []string{headFile, catalogueFile, evidenceFile, againstFile}

// KeptRun returns the name of the run that a directory is about, whoever signed what lies there; empty when it is about none.
func KeptRun(fs FS) (string, error) {
	raw, err := ledger{fs}.read(headFile)
	if err != nil || raw == nil {
		return "", err
	}
	h, err := openHead(raw, func(peer.ID) bool { return true })
	if err != nil {
		return "", damaged(headFile, err)
	}
	return h.Value.Run, nil
}

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
	if b.evidence, err = l.readProof(evidenceFile, b); err != nil {
		return err
	}
	b.against, err = l.readProof(againstFile, b)
	return err
}

// readProof reads one half of a contradiction. One that was signed by someone who is no longer a publisher no longer
// matters.
func (l ledger) readProof(name string, b *book) (sealed[Head], error) {
	raw, err := l.read(name)
	if err != nil || raw == nil {
		return sealed[Head]{}, err
	}
	h, err := openHead(raw, b.listed)
	if err != nil && !errors.Is(err, errForged) {
		return h, damaged(name, err)
	}
	return h, nil
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

// page is a file of the ledger and what it is to hold.
type page struct {
	name string
	raw  []byte // empty leaves the file as it is
}

// save makes the given records durable; an empty one is left as it is. The head goes first: what it guards against, a
// return to an older version, is worse than an older list of edges.
func (l ledger) save(head, catalogue []byte) error {
	return l.write(page{headFile, head}, page{catalogueFile, catalogue})
}

// saveEvidence makes two heads durable that contradict each other.
func (l ledger) saveEvidence(first, second []byte) error {
	return l.write(page{againstFile, first}, page{evidenceFile, second})
}

// write replaces one file after the other, each in a way that a loss of power leaves the old record or the new one.
func (l ledger) write(pages ...page) error {
	for _, p := range pages {
		if len(p.raw) == 0 {
			continue
		}
		if err := l.fs.WriteDurable(p.name, p.raw); err != nil {
			return fmt.Errorf("ledger: write %s: %w", p.name, err)
		}
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
