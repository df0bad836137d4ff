package mesh

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/sparsecast/sparsecast/delta"
)

// The protocols of the chunk exchange. A frame is a uvarint length and that many bytes. On a control stream, which
// its opener alone writes, a frame is one control message in canonical CBOR. On a chunk stream the opener writes
// requests (ID u64, digest 32 bytes) and reads responses (ID u64, status u8, bytes); integers are big-endian.
const (
	controlProtocol protocol.ID = "/sparsecast/control/2"
	chunkProtocol   protocol.ID = "/sparsecast/chunk/1"
)

// Bounds of the wire. Whatever breaks one is refused before memory is taken for it.
const (
	maxChunkBits    = delta.MaxChunks // chunks of one manifest
	maxControl      = maxChunkBits/8 + 1<<10
	maxIndices      = 1 << 10 // indices in one "more"
	maxWants        = 64      // manifests one peer may ask to hear about
	requestSize     = 8 + delta.RootSize
	responseHeading = 8 + 1
)

// errMalformed says that a peer sent what an honest one never sends.
var errMalformed = errors.New("malformed message")

// kind names a control message.
type kind uint64

const (
	kindHello  kind = iota + 1 // Role, Cluster, Runs; first on every control stream
	kindWant                   // Manifest: I am fetching it, tell me what you hold
	kindUnwant                 // Manifest: no longer
	kindHave                   // Manifest, Bits: what I hold, in answer to a want
	kindMore                   // Manifest, Indices: what I hold besides
	kindPing                   // Nonce
	kindPong                   // Nonce of the ping
)

// control is one control message; the kind says which fields are set.
type control struct {
	Kind     kind     `cbor:"0,keyasint"`
	Role     string   `cbor:"1,keyasint,omitempty"`
	Cluster  string   `cbor:"2,keyasint,omitempty"`
	Runs     []string `cbor:"3,keyasint,omitempty"` // ascending
	Manifest []byte   `cbor:"4,keyasint,omitempty"` // its digest
	Bits     []byte   `cbor:"5,keyasint,omitempty"` // chunk i is bit i%8 of byte i/8; none when nothing is held
	Indices  []uint32 `cbor:"6,keyasint,omitempty"` // increasing
	Nonce    uint64   `cbor:"7,keyasint,omitempty"`
}

// validate reports the first rule that m breaks. Writing and reading both apply it.
func (m *control) validate() error {
	names := len(m.Role) > 0 || len(m.Cluster) > 0 || len(m.Runs) > 0
	about := m.Kind >= kindWant && m.Kind <= kindMore
	switch {
	case m.Kind < kindHello || m.Kind > kindPong:
		return fmt.Errorf("%w: unknown kind %d", errMalformed, m.Kind)
	case names && m.Kind != kindHello, len(m.Bits) > 0 && m.Kind != kindHave,
		(len(m.Indices) > 0) != (m.Kind == kindMore), m.Nonce != 0 && m.Kind < kindPing:
		return fmt.Errorf("%w: fields of another kind than %d", errMalformed, m.Kind)
	case max(len(m.Role), len(m.Cluster)) > maxName:
		return fmt.Errorf("%w: name above %d bytes", errMalformed, maxName)
	case len(m.Runs) > maxRuns:
		return fmt.Errorf("%w: %d runs, at most %d", errMalformed, len(m.Runs), maxRuns)
	case about != (len(m.Manifest) == delta.RootSize) || !about && len(m.Manifest) > 0:
		return fmt.Errorf("%w: manifest digest of %d bytes", errMalformed, len(m.Manifest))
	case len(m.Bits) > maxChunkBits/8 || len(m.Indices) > maxIndices:
		return fmt.Errorf("%w: %d bytes of bits, %d indices", errMalformed, len(m.Bits), len(m.Indices))
	}
	for i, run := range m.Runs {
		if len(run) > maxName || i > 0 && run <= m.Runs[i-1] {
			return fmt.Errorf("%w: run %d of a hello", errMalformed, i)
		}
	}
	for i, index := range m.Indices {
		if index >= maxChunkBits || i > 0 && index <= m.Indices[i-1] {
			return fmt.Errorf("%w: chunk index %d", errMalformed, index)
		}
	}
	return nil
}

// aboutManifest returns a message about the manifest id.
func aboutManifest(k kind, id cid.Cid) control {
	d, err := delta.Digest(id)
	if err != nil {
		panic(err) // callers checked the ID when they took it in
	}
	return control{Kind: k, Manifest: d}
}

// encodeControl returns m as a frame.
func encodeControl(m control) ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	body, err := delta.MarshalRecord(m)
	if err != nil {
		return nil, fmt.Errorf("encode control message: %w", err)
	}
	return append(binary.AppendUvarint(nil, uint64(len(body))), body...), nil
}

// readControl reads one frame. An error that is not errMalformed came from the stream.
func readControl(r *bufio.Reader) (control, error) {
	var m control
	n, err := readLength(r, maxControl)
	if err != nil {
		return m, err
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return m, fmt.Errorf("read control message: %w", err)
	}
	if err := delta.UnmarshalRecord(body, &m); err != nil {
		return m, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return m, m.validate()
}

// readLength reads the length of a frame and refuses one above limit or written longer than need be.
func readLength(r io.ByteReader, limit int) (int, error) {
	var n uint64
	for shift := 0; ; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			return 0, fmt.Errorf("read frame length: %w", err)
		}
		n |= uint64(b&0x7f) << shift
		if n > uint64(limit) || shift > 28 || b == 0 && shift > 0 {
			return 0, fmt.Errorf("%w: frame length, at most %d", errMalformed, limit)
		}
		if b < 0x80 {
			return int(n), nil
		}
	}
}

// status is the outcome of a request.
type status uint8

const (
	statusOK     status = iota // the bytes follow
	statusAbsent               // not here
	statusBusy                 // too many requests are waiting; ask again later or elsewhere
)

// encodeRequest returns a request as a frame.
func encodeRequest(id uint64, digest []byte) []byte {
	b := append(make([]byte, 0, 1+requestSize), requestSize)
	return append(binary.BigEndian.AppendUint64(b, id), digest...)
}

// readRequest reads one request.
func readRequest(r *bufio.Reader) (uint64, cid.Cid, error) {
	n, err := readLength(r, requestSize)
	if err != nil {
		return 0, cid.Undef, err
	}
	if n != requestSize {
		return 0, cid.Undef, fmt.Errorf("%w: request of %d bytes", errMalformed, n)
	}
	var b [requestSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, cid.Undef, fmt.Errorf("read request: %w", err)
	}
	id, err := delta.FromDigest(b[8:])
	return binary.BigEndian.Uint64(b[:8]), id, err
}

// encodeHeading returns the start of a response; size bytes follow it.
func encodeHeading(id uint64, s status, size int) []byte {
	b := binary.AppendUvarint(nil, uint64(responseHeading+size))
	return append(binary.BigEndian.AppendUint64(b, id), byte(s))
}

// readHeading reads the start of a response and returns how many bytes follow.
func readHeading(r *bufio.Reader) (id uint64, s status, size int, err error) {
	n, err := readLength(r, responseHeading+delta.MaxBlock)
	if err != nil {
		return 0, 0, 0, err
	}
	if n < responseHeading {
		return 0, 0, 0, fmt.Errorf("%w: response of %d bytes", errMalformed, n)
	}
	var b [responseHeading]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, 0, 0, fmt.Errorf("read response: %w", err)
	}
	id, s, size = binary.BigEndian.Uint64(b[:8]), status(b[8]), n-responseHeading
	if s > statusBusy || s != statusOK && size > 0 {
		return 0, 0, 0, fmt.Errorf("%w: response status %d with %d bytes", errMalformed, s, size)
	}
	return id, s, size, nil
}
