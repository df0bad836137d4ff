#include "textflag.h"

// Kernels for arm64 with NEON, which all have. What they do is said in kernel.go and done in Go in kernel_go.go.

// A byte for each of eight words, with the bit that stands for it.
#define LANE_BITS(v) \
	MOVD $0x8040201008040201, R9 \
	VMOV R9, v.D[0]              \
	VMOV R9, v.D[1]

// COLLECT makes a uint64 in R9 of 64 bytes, of which each has just the bit that stands for it, or none.
#define COLLECT(a, b, c, d) \
	VADDP b.B16, a.B16, a.B16 \
	VADDP d.B16, c.B16, c.B16 \
	VADDP c.B16, a.B16, a.B16 \
	VADDP a.B16, a.B16, a.B16 \
	VMOV  a.D[0], R9

// func diff8NEON(changed *uint64, old, new *byte, rows int)
TEXT ·diff8NEON(SB), NOSPLIT, $0-32
	MOVD changed+0(FP), R0
	MOVD old+8(FP), R1
	MOVD new+16(FP), R2
	MOVD rows+24(FP), R3
	LANE_BITS(V30)

diff8:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1.P 64(R2), [V4.B16, V5.B16, V6.B16, V7.B16]
	VCMEQ  V4.B16, V0.B16, V0.B16
	VCMEQ  V5.B16, V1.B16, V1.B16
	VCMEQ  V6.B16, V2.B16, V2.B16
	VCMEQ  V7.B16, V3.B16, V3.B16
	VAND   V30.B16, V0.B16, V0.B16
	VAND   V30.B16, V1.B16, V1.B16
	VAND   V30.B16, V2.B16, V2.B16
	VAND   V30.B16, V3.B16, V3.B16
	COLLECT(V0, V1, V2, V3)
	MVN    R9, R9
	MOVD.P R9, 8(R0)
	SUB    $1, R3
	CBNZ   R3, diff8
	RET

// func diff16NEON(changed *uint64, old, new *byte, rows int)
TEXT ·diff16NEON(SB), NOSPLIT, $0-32
	MOVD changed+0(FP), R0
	MOVD old+8(FP), R1
	MOVD new+16(FP), R2
	MOVD rows+24(FP), R3
	LANE_BITS(V30)

diff16:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1.P 64(R1), [V4.B16, V5.B16, V6.B16, V7.B16]
	VLD1.P 64(R2), [V16.B16, V17.B16, V18.B16, V19.B16]
	VLD1.P 64(R2), [V20.B16, V21.B16, V22.B16, V23.B16]
	VCMEQ  V16.H8, V0.H8, V0.H8
	VCMEQ  V17.H8, V1.H8, V1.H8
	VCMEQ  V18.H8, V2.H8, V2.H8
	VCMEQ  V19.H8, V3.H8, V3.H8
	VCMEQ  V20.H8, V4.H8, V4.H8
	VCMEQ  V21.H8, V5.H8, V5.H8
	VCMEQ  V22.H8, V6.H8, V6.H8
	VCMEQ  V23.H8, V7.H8, V7.H8
	VUZP1  V1.B16, V0.B16, V0.B16
	VUZP1  V3.B16, V2.B16, V2.B16
	VUZP1  V5.B16, V4.B16, V4.B16
	VUZP1  V7.B16, V6.B16, V6.B16
	VAND   V30.B16, V0.B16, V0.B16
	VAND   V30.B16, V2.B16, V2.B16
	VAND   V30.B16, V4.B16, V4.B16
	VAND   V30.B16, V6.B16, V6.B16
	COLLECT(V0, V2, V4, V6)
	MVN    R9, R9
	MOVD.P R9, 8(R0)
	SUB    $1, R3
	CBNZ   R3, diff16
	RET

// SORT_RULE loads the sortRule at R4: V28 has what to shift by, below 0 for to the right, V27 the mask, V26 what is taken off, V25
// the largest class, and V21 to V24 its bits.
#define SORT_RULE \
	LANE_BITS(V30)          \
	MOVD (R4), R5           \
	NEG  R5, R5             \
	MOVD 8(R4), R6          \
	VDUP R6, V27.B16        \
	MOVD 16(R4), R6         \
	VDUP R6, V26.B16        \
	VMOVI $15, V25.B16      \
	VMOVI $1, V21.B16       \
	VMOVI $2, V22.B16       \
	VMOVI $4, V23.B16       \
	VMOVI $8, V24.B16

// CLASSES makes classes of the exponents in bytes.
#define CLASSES(v) \
	VAND  V27.B16, v.B16, v.B16 \
	VUMAX V26.B16, v.B16, v.B16 \
	VSUB  V26.B16, v.B16, v.B16 \
	VUMIN V25.B16, v.B16, v.B16

// PLANE stores one bit of the classes in V0, V2, V4 and V6.
#define PLANE(bit, at) \
	VCMTST bit.B16, V0.B16, V16.B16  \
	VCMTST bit.B16, V2.B16, V17.B16  \
	VCMTST bit.B16, V4.B16, V18.B16  \
	VCMTST bit.B16, V6.B16, V19.B16  \
	VAND   V30.B16, V16.B16, V16.B16 \
	VAND   V30.B16, V17.B16, V17.B16 \
	VAND   V30.B16, V18.B16, V18.B16 \
	VAND   V30.B16, V19.B16, V19.B16 \
	COLLECT(V16, V17, V18, V19)      \
	MOVD   R9, at(R0)

#define PLANES \
	PLANE(V21, 0)    \
	PLANE(V22, 512)  \
	PLANE(V23, 1024) \
	PLANE(V24, 1536)

// The assembler does not know USHL, which shifts the lanes of a register by those of V28.
#define SHIFT_BYTES(n) WORD $(0x6e3c4400 | n<<5 | n)
#define SHIFT_WORDS(n) WORD $(0x6e7c4400 | n<<5 | n)

// func sort8NEON(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)
TEXT ·sort8NEON(SB), NOSPLIT, $0-32
	MOVD planes+0(FP), R0
	MOVD words+8(FP), R1
	MOVD rows+24(FP), R3
	MOVD rule+16(FP), R4
	SORT_RULE
	VDUP R5, V28.B16

sort8:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VMOV   V3.B16, V6.B16
	VMOV   V2.B16, V4.B16
	VMOV   V1.B16, V2.B16
	SHIFT_BYTES(0)
	SHIFT_BYTES(2)
	SHIFT_BYTES(4)
	SHIFT_BYTES(6)
	CLASSES(V0)
	CLASSES(V2)
	CLASSES(V4)
	CLASSES(V6)
	PLANES
	ADD    $8, R0
	SUB    $1, R3
	CBNZ   R3, sort8
	RET

// func sort16NEON(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)
TEXT ·sort16NEON(SB), NOSPLIT, $0-32
	MOVD planes+0(FP), R0
	MOVD words+8(FP), R1
	MOVD rows+24(FP), R3
	MOVD rule+16(FP), R4
	SORT_RULE
	VDUP R5, V28.H8

sort16:
	VLD1.P 64(R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1.P 64(R1), [V4.B16, V5.B16, V6.B16, V7.B16]
	SHIFT_WORDS(0)
	SHIFT_WORDS(1)
	SHIFT_WORDS(2)
	SHIFT_WORDS(3)
	SHIFT_WORDS(4)
	SHIFT_WORDS(5)
	SHIFT_WORDS(6)
	SHIFT_WORDS(7)
	VUZP1  V1.B16, V0.B16, V0.B16 // an exponent is in the lower byte
	VUZP1  V3.B16, V2.B16, V2.B16
	VUZP1  V5.B16, V4.B16, V4.B16
	VUZP1  V7.B16, V6.B16, V6.B16
	CLASSES(V0)
	CLASSES(V2)
	CLASSES(V4)
	CLASSES(V6)
	PLANES
	ADD    $8, R0
	SUB    $1, R3
	CBNZ   R3, sort16
	RET

// func rankNEON(members *[spanRows][classCount]uint64, before *[spanRows][classCount]uint16, totals *[classCount]uint16,
//	planes *[4][spanRows]uint64, rows int)
TEXT ·rankNEON(SB), NOSPLIT, $0-40
	MOVD members+0(FP), R0
	MOVD before+8(FP), R1
	MOVD totals+16(FP), R2
	MOVD planes+24(FP), R3
	MOVD rows+32(FP), R4
	VEOR V16.B16, V16.B16, V16.B16 // words of classes 0 to 7 so far
	VEOR V17.B16, V17.B16, V17.B16

rank:
	VST1.P [V16.H8, V17.H8], 32(R1)
	MOVD   512(R3), R6
	MOVD   1024(R3), R7
	MOVD   1536(R3), R8
	MOVD.P 8(R3), R5

	// Lanes stand for two classes that follow each other.
	MVN    R5, R9
	VMOV   R9, V20.D[0]
	VMOV   R5, V20.D[1]
	MVN    R6, R9
	VDUP   R6, V21.D2
	VDUP   R9, V22.D2
	VAND   V20.B16, V22.B16, V22.B16 // classes 0 and 1 of 4
	VAND   V20.B16, V21.B16, V21.B16 // classes 2 and 3

	AND    R7, R8, R9
	VDUP   R9, V26.D2
	BIC    R7, R8, R9
	VDUP   R9, V25.D2
	BIC    R8, R7, R9
	VDUP   R9, V24.D2
	ORR    R7, R8, R9
	MVN    R9, R9
	VDUP   R9, V23.D2

	VAND   V22.B16, V23.B16, V0.B16
	VAND   V21.B16, V23.B16, V1.B16
	VAND   V22.B16, V24.B16, V2.B16
	VAND   V21.B16, V24.B16, V3.B16
	VAND   V22.B16, V25.B16, V4.B16
	VAND   V21.B16, V25.B16, V5.B16
	VAND   V22.B16, V26.B16, V6.B16
	VAND   V21.B16, V26.B16, V7.B16
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R0)
	VST1.P [V4.B16, V5.B16, V6.B16, V7.B16], 64(R0)

	// Count the bits of bytes, and add up those of each class.
	VCNT    V0.B16, V0.B16
	VCNT    V1.B16, V1.B16
	VCNT    V2.B16, V2.B16
	VCNT    V3.B16, V3.B16
	VCNT    V4.B16, V4.B16
	VCNT    V5.B16, V5.B16
	VCNT    V6.B16, V6.B16
	VCNT    V7.B16, V7.B16
	VADDP   V1.B16, V0.B16, V0.B16
	VADDP   V3.B16, V2.B16, V2.B16
	VADDP   V5.B16, V4.B16, V4.B16
	VADDP   V7.B16, V6.B16, V6.B16
	VADDP   V2.B16, V0.B16, V0.B16
	VADDP   V6.B16, V4.B16, V4.B16
	VADDP   V4.B16, V0.B16, V0.B16
	VUADDW  V0.B8, V16.H8, V16.H8
	VUADDW2 V0.B16, V17.H8, V17.H8
	SUB     $1, R4
	CBNZ    R4, rank
	VST1    [V16.H8, V17.H8], (R2)
	RET
