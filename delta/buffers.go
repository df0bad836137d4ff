package delta

import "sync"

// The code of a frame goes from one goroutine to another, and some of it is megabytes: buffers are used again.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// takeBuffer returns an empty buffer, which may have room already.
func takeBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

// giveBuffer says that nobody looks at b any more.
func giveBuffer(b []byte) { buffers.Put(&b) }
