package sim

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
)

// memoryLedger is a disk that never fails, for the mesh's ledger.
type memoryLedger struct {
	mu    sync.Mutex
	files map[string][]byte
}

func newMemoryLedger() *memoryLedger { return &memoryLedger{files: make(map[string][]byte)} }

func (l *memoryLedger) ReadFile(name string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, ok := l.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(b), nil
}

func (l *memoryLedger) Size(name string) (int64, error) {
	b, err := l.ReadFile(name)
	return int64(len(b)), err
}

func (l *memoryLedger) WriteFile(name string, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[name] = slices.Clone(data)
	return nil
}

func (l *memoryLedger) WriteDurable(name string, data []byte) error { return l.WriteFile(name, data) }

func (l *memoryLedger) Sync(...string) error { return nil }

func (l *memoryLedger) Remove(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, name)
	return nil
}

func (l *memoryLedger) List(dir string) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var names []string
	for name := range l.files {
		if strings.HasPrefix(name, dir) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
