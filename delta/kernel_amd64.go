package delta

import "github.com/klauspost/cpuid/v2"

func machineKernels() []kernel {
	var list []kernel
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512VPOPCNTDQ, cpuid.AVX512VBMI2, cpuid.BMI1, cpuid.BMI2) {
		list = append(list, kernel{
			name: "avx512", diff8: diff8AVX512, diff16: diff16AVX512, sort8: sort8AVX512, sort16: sort16AVX512,
			rank: rankAVX512, list: listAVX512, find: findBMI2,
		})
	}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.POPCNT, cpuid.BMI1, cpuid.BMI2) {
		list = append(list, kernel{
			name: "avx2", diff8: diff8AVX2, diff16: diff16AVX2, sort8: sort8AVX2, sort16: sort16AVX2,
			rank: rankAVX2, list: listBMI1, find: findBMI2,
		})
	}
	return list
}

//go:noescape
func diff8AVX512(changed *uint64, old, new *byte, rows int)

//go:noescape
func diff16AVX512(changed *uint64, old, new *byte, rows int)

//go:noescape
func sort8AVX512(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)

//go:noescape
func sort16AVX512(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)

//go:noescape
func rankAVX512(members *[spanRows][classCount]uint64, before *[spanRows][classCount]uint16, totals *[classCount]uint16, planes *[4][spanRows]uint64, rows int)

//go:noescape
func listAVX512(places *[spanWords + rowWords]uint16, changed *uint64, rows int) int

//go:noescape
func diff8AVX2(changed *uint64, old, new *byte, rows int)

//go:noescape
func diff16AVX2(changed *uint64, old, new *byte, rows int)

//go:noescape
func sort8AVX2(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)

//go:noescape
func sort16AVX2(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)

//go:noescape
func rankAVX2(members *[spanRows][classCount]uint64, before *[spanRows][classCount]uint16, totals *[classCount]uint16, planes *[4][spanRows]uint64, rows int)

//go:noescape
func listBMI1(places *[spanWords + rowWords]uint16, changed *uint64, rows int) int

//go:noescape
func findBMI2(places *uint16, ranks *uint32, n int, begin, end uint32, before *uint16, members *uint64) int
