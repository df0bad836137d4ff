package delta

func machineKernels() []kernel {
	return []kernel{{
		name: "neon", diff8: diff8NEON, diff16: diff16NEON, sort8: sort8NEON, sort16: sort16NEON,
		rank: rankNEON, list: listGo, find: findGo, // there is no instruction that would help them
	}}
}

//go:noescape
func diff8NEON(changed *uint64, old, new *byte, rows int)

//go:noescape
func diff16NEON(changed *uint64, old, new *byte, rows int)

//go:noescape
func sort8NEON(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)

//go:noescape
func sort16NEON(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)

//go:noescape
func rankNEON(members *[spanRows][classCount]uint64, before *[spanRows][classCount]uint16, totals *[classCount]uint16, planes *[4][spanRows]uint64, rows int)
