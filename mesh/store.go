package mesh

import (
	"errors"

	"github.com/ipfs/go-cid"
)

// ErrNotFound says that a store does not hold a block.
var ErrNotFound = errors.New("block not found")

// Store keeps blocks (chunks, manifests, schemas) by content ID. Every method is safe for concurrent use.
// What Get returns has been checked against its ID; a block that rotted on disk is dropped and reported as
// ErrNotFound, so that it is fetched again. The caller must not change a slice that Get returned or Put took.
type Store interface {
	Get(id cid.Cid) ([]byte, error)
	Has(id cid.Cid) bool
	Put(id cid.Cid, data []byte) error // refuses data that id does not name
	Delete(id cid.Cid) error           // nil when absent
	List() ([]cid.Cid, error)          // in no order; what could not be deleted, too
	Sync() error                       // everything put before is durable after
	Size() (blocks int, bytes uint64)  // of all that is held
}
