package safetensors

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxShown bounds how much of a foreign string an error repeats, in bytes.
const maxShown = 200

// validText tells whether all strings can stand in a header.
func validText(list ...string) bool {
	for _, s := range list {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

// quote shows a foreign string in an error without repeating megabytes of it.
func quote(s string) string {
	if len(s) <= maxShown {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:maxShown], len(s))
}

// halfSurrogate returns the place of the first \u escape that is half of a surrogate pair, or -1.
// Backslashes stand only inside strings in valid JSON; invalid JSON is found by the decoder.
func halfSurrogate(b []byte) int {
	for i := 0; ; {
		next := bytes.IndexByte(b[i:], '\\')
		if next < 0 {
			return -1
		}
		i += next
		switch r := escape(b[i:]); {
		case r < 0xD800 || r > 0xDFFF:
			i = min(i+2, len(b))
		case r >= 0xDC00:
			return i
		default:
			if low := escape(b[i+6:]); low < 0xDC00 || low > 0xDFFF {
				return i
			}
			i += 12
		}
	}
}

// escape returns the code unit of the \uXXXX that b begins with, or -1.
func escape(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	r, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(r)
}
