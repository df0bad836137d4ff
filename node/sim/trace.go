package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"
	"time"
)

// Trace is what happened, line by line with the virtual time, and a hash over it: two runs were the same when their
// hashes are. It is safe for concurrent use, and an io.Writer for logs.
type Trace struct {
	start time.Time
	mu    sync.Mutex
	hash  hash.Hash
	out   io.Writer
	lines int
}

// NewTrace returns a trace that begins now and is written to out, too. It holds nothing back, so that the last lines
// before a crash are there.
func NewTrace(out io.Writer) *Trace { return &Trace{start: time.Now(), hash: sha256.New(), out: out} }

// Note adds a line.
func (t *Trace) Note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line(fmt.Sprintf(format, args...))
}

// Delivery adds a packet with a checksum of what it carries. It fits Network.Trace.
func (t *Trace) Delivery(d Delivery) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line(fmt.Sprintf("%s>%s %s %d %08x", d.From, d.To, d.Kind, len(d.Data), crc32.ChecksumIEEE(d.Data)))
}

// Write adds a line of a log.
func (t *Trace) Write(p []byte) (int, error) {
	t.Note("%s", p)
	return len(p), nil
}

func (t *Trace) line(s string) {
	line := fmt.Sprintf("%.9f %s\n", time.Since(t.start).Seconds(), s)
	t.lines++
	_, _ = io.WriteString(t.hash, line) // a hash does not fail
	_, _ = io.WriteString(t.out, line)  // what is lost shows in the file, and must not change the run
}

// Sum returns the hash so far and the number of lines.
func (t *Trace) Sum() (sum string, lines int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return hex.EncodeToString(t.hash.Sum(nil))[:32], t.lines
}
