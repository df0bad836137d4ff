package safetensors

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of values that are passed over.
const maxDepth = 64

// space is the white space of JSON.
const space = " \t\r\n"

// walker reads one JSON object member by member, so that memory follows what is kept and not what is written.
type walker struct {
	dec *json.Decoder
	raw json.RawMessage // the array at hand
}

// newWalker checks what the decoder would let pass: the reference refuses bad UTF-8 and half surrogate pairs,
// while encoding/json turns both into U+FFFD, which could make two names one.
func newWalker(b []byte) (*walker, error) {
	if len(b) == 0 || b[0] != '{' {
		return nil, errors.New("does not begin with '{'")
	}
	if !utf8.Valid(b) {
		return nil, errors.New("is not valid UTF-8")
	}
	if at := halfSurrogate(b); at >= 0 {
		return nil, fmt.Errorf("is invalid JSON: half a surrogate pair at byte %d", at)
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	return &walker{dec: dec}, nil
}

// next returns the next token.
func (w *walker) next() (json.Token, error) {
	t, err := w.dec.Token()
	return t, w.syntax(err)
}

// syntax says where the decoder gave up.
func (w *walker) syntax(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("invalid JSON: ends early")
	}
	return fmt.Errorf("invalid JSON near byte %d: %w", w.dec.InputOffset(), err)
}

// open consumes the opening delimiter d.
func (w *walker) open(d json.Delim) error {
	t, err := w.next()
	if err != nil {
		return err
	}
	if t != d {
		return fmt.Errorf("want %q, found %s", d.String(), kind(t))
	}
	return nil
}

// members calls visit with every key of an object that is open already; visit consumes the value.
func (w *walker) members(visit func(key string) error) error {
	for w.dec.More() {
		t, err := w.next()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return fmt.Errorf("want a key, found %s", kind(t))
		}
		if err := visit(key); err != nil {
			return err
		}
	}
	_, err := w.next()
	return err
}

// object consumes an object.
func (w *walker) object(visit func(key string) error) error {
	if err := w.open('{'); err != nil {
		return err
	}
	return w.members(visit)
}

// objectOrNull consumes an object or null, and tells whether it was an object.
func (w *walker) objectOrNull(visit func(key string) error) (found bool, err error) {
	t, err := w.next()
	if err != nil || t == nil {
		return false, err
	}
	if t != json.Delim('{') {
		return false, fmt.Errorf("want an object, found %s", kind(t))
	}
	return true, w.members(visit)
}

// numbers consumes an array of at most limit unsigned integers: no sign, fraction or exponent.
// It takes the array as one token, which spares most of the decoder's time on a long header.
func (w *walker) numbers(limit int) ([]uint64, error) {
	if err := w.dec.Decode(&w.raw); err != nil {
		return nil, w.syntax(err)
	}
	if w.raw[0] != '[' {
		return nil, fmt.Errorf("want an array, found %s", quote(string(w.raw)))
	}
	inside := bytes.Trim(w.raw[1:len(w.raw)-1], space)
	if len(inside) == 0 {
		return []uint64{}, nil
	}
	n := bytes.Count(inside, []byte{','}) + 1
	if n > limit {
		return nil, fmt.Errorf("more than %d numbers", limit)
	}
	list := make([]uint64, 0, n)
	for item := range bytes.SplitSeq(inside, []byte{','}) {
		item = bytes.Trim(item, space)
		v, err := strconv.ParseUint(string(item), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: want an unsigned 64-bit integer", quote(string(item)))
		}
		list = append(list, v)
	}
	return list, nil
}

// text consumes a string.
func (w *walker) text() (string, error) {
	t, err := w.next()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("want a string, found %s", kind(t))
	}
	return s, nil
}

// skip consumes any value.
func (w *walker) skip() error {
	for depth := 0; ; {
		t, err := w.next()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
		if depth > maxDepth {
			return fmt.Errorf("nested deeper than %d", maxDepth)
		}
	}
}

// end reports anything but white space after the object.
func (w *walker) end() error {
	if _, err := w.dec.Token(); err != io.EOF {
		return fmt.Errorf("invalid JSON: more follows the object, near byte %d", w.dec.InputOffset())
	}
	return nil
}

// kind names what a token is, for errors.
func kind(t json.Token) string {
	switch v := t.(type) {
	case json.Delim:
		return strconv.Quote(v.String())
	case string:
		return "the string " + quote(v)
	case json.Number:
		return "the number " + quote(v.String())
	case nil:
		return "null"
	default:
		return fmt.Sprint(v)
	}
}
