//go:build !amd64 && !arm64

package delta

func machineKernels() []kernel { return nil }
