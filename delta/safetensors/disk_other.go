//go:build !linux

package safetensors

// Reserve does nothing: here a full disk shows when it is written.
func (osFile) Reserve(int64) error { return nil }
