package bench

import "io"

// spool keeps what is written and gives it back from its begin: a file in memory, of which only Seek to the begin is used.
type spool struct {
	data []byte
	read int
}

func (s *spool) Write(p []byte) (int, error) {
	s.data = append(s.data, p...)
	return len(p), nil
}

func (s *spool) Read(p []byte) (int, error) {
	if s.read == len(s.data) {
		return 0, io.EOF
	}
	n := copy(p, s.data[s.read:])
	s.read += n
	return n, nil
}

// Seek goes to the begin, which is all that codes of edges ask for.
func (s *spool) Seek(int64, int) (int64, error) {
	s.read = 0
	return 0, nil
}

// empty makes room for the next edge.
func (s *spool) empty() { s.data, s.read = s.data[:0], 0 }
