#include "textflag.h"

// Kernels for AVX2, BMI1 and BMI2. What they do is said in kernel.go and done in Go in kernel_go.go.

// func diff8AVX2(changed *uint64, old, new *byte, rows int)
TEXT ·diff8AVX2(SB), NOSPLIT, $0-32
	MOVQ changed+0(FP), DX
	MOVQ old+8(FP), SI
	MOVQ new+16(FP), DI
	MOVQ rows+24(FP), CX

diff8:
	VMOVDQU   (SI), Y0
	VMOVDQU   32(SI), Y1
	VPCMPEQB  (DI), Y0, Y0
	VPCMPEQB  32(DI), Y1, Y1
	VPMOVMSKB Y0, AX
	VPMOVMSKB Y1, BX
	SHLQ      $32, BX
	ORQ       BX, AX
	NOTQ      AX
	MOVQ      AX, (DX)
	ADDQ      $64, SI
	ADDQ      $64, DI
	ADDQ      $8, DX
	DECQ      CX
	JNZ       diff8
	VZEROUPPER
	RET

// func diff16AVX2(changed *uint64, old, new *byte, rows int)
TEXT ·diff16AVX2(SB), NOSPLIT, $0-32
	MOVQ changed+0(FP), DX
	MOVQ old+8(FP), SI
	MOVQ new+16(FP), DI
	MOVQ rows+24(FP), CX

diff16:
	VMOVDQU   (SI), Y0
	VMOVDQU   32(SI), Y1
	VMOVDQU   64(SI), Y2
	VMOVDQU   96(SI), Y3
	VPCMPEQW  (DI), Y0, Y0
	VPCMPEQW  32(DI), Y1, Y1
	VPCMPEQW  64(DI), Y2, Y2
	VPCMPEQW  96(DI), Y3, Y3
	VPACKSSWB Y1, Y0, Y0
	VPACKSSWB Y3, Y2, Y2
	VPERMQ    $0xd8, Y0, Y0
	VPERMQ    $0xd8, Y2, Y2
	VPMOVMSKB Y0, AX
	VPMOVMSKB Y2, BX
	SHLQ      $32, BX
	ORQ       BX, AX
	NOTQ      AX
	MOVQ      AX, (DX)
	SUBQ      $-128, SI
	SUBQ      $-128, DI
	ADDQ      $8, DX
	DECQ      CX
	JNZ       diff16
	VZEROUPPER
	RET

// PLANE stores a bit of the classes in the bytes of Y0 and Y1, which a shift to the left brings to the top of the byte.
#define PLANE(left, at) \
	VPSLLW    $left, Y0, Y4 \
	VPSLLW    $left, Y1, Y5 \
	VPMOVMSKB Y4, AX        \
	VPMOVMSKB Y5, BX        \
	SHLQ      $32, BX       \
	ORQ       BX, AX        \
	MOVQ      AX, at(DX)

// func sort8AVX2(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)
TEXT ·sort8AVX2(SB), NOSPLIT, $0-32
	MOVQ         planes+0(FP), DX
	MOVQ         words+8(FP), SI
	MOVQ         rule+16(FP), AX
	MOVQ         rows+24(FP), CX
	VMOVQ        (AX), X12
	VPBROADCASTB 8(AX), Y13
	VPBROADCASTB 16(AX), Y14
	MOVL         $15, AX
	VMOVD        AX, X15
	VPBROADCASTB X15, Y15

sort8:
	VMOVDQU  (SI), Y0
	VMOVDQU  32(SI), Y1
	VPSRLW   X12, Y0, Y0
	VPSRLW   X12, Y1, Y1
	VPAND    Y13, Y0, Y0
	VPAND    Y13, Y1, Y1
	VPSUBUSB Y14, Y0, Y0
	VPSUBUSB Y14, Y1, Y1
	VPMINUB  Y15, Y0, Y0
	VPMINUB  Y15, Y1, Y1
	PLANE(7, 0)
	PLANE(6, 512)
	PLANE(5, 1024)
	PLANE(4, 1536)
	ADDQ     $64, SI
	ADDQ     $8, DX
	DECQ     CX
	JNZ      sort8
	VZEROUPPER
	RET

// func sort16AVX2(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)
TEXT ·sort16AVX2(SB), NOSPLIT, $0-32
	MOVQ         planes+0(FP), DX
	MOVQ         words+8(FP), SI
	MOVQ         rule+16(FP), AX
	MOVQ         rows+24(FP), CX
	VMOVQ        (AX), X12
	VPBROADCASTW 8(AX), Y13
	VPBROADCASTW 16(AX), Y14
	MOVL         $15, AX
	VMOVD        AX, X15
	VPBROADCASTB X15, Y15

sort16:
	VMOVDQU   (SI), Y0
	VMOVDQU   32(SI), Y2
	VMOVDQU   64(SI), Y1
	VMOVDQU   96(SI), Y3
	VPSRLW    X12, Y0, Y0
	VPSRLW    X12, Y1, Y1
	VPSRLW    X12, Y2, Y2
	VPSRLW    X12, Y3, Y3
	VPAND     Y13, Y0, Y0
	VPAND     Y13, Y1, Y1
	VPAND     Y13, Y2, Y2
	VPAND     Y13, Y3, Y3
	VPSUBUSW  Y14, Y0, Y0
	VPSUBUSW  Y14, Y1, Y1
	VPSUBUSW  Y14, Y2, Y2
	VPSUBUSW  Y14, Y3, Y3
	VPACKUSWB Y2, Y0, Y0 // at most 255, and then at most 15
	VPACKUSWB Y3, Y1, Y1
	VPERMQ    $0xd8, Y0, Y0
	VPERMQ    $0xd8, Y1, Y1
	VPMINUB   Y15, Y0, Y0
	VPMINUB   Y15, Y1, Y1
	PLANE(7, 0)
	PLANE(6, 512)
	PLANE(5, 1024)
	PLANE(4, 1536)
	SUBQ      $-128, SI
	ADDQ      $8, DX
	DECQ      CX
	JNZ       sort16
	VZEROUPPER
	RET

// Lanes stand for four classes that follow each other: set where the bit of the class is 0.
DATA evenLanes<>+0(SB)/8, $-1
DATA evenLanes<>+8(SB)/8, $0
DATA evenLanes<>+16(SB)/8, $-1
DATA evenLanes<>+24(SB)/8, $0
GLOBL evenLanes<>(SB), RODATA|NOPTR, $32

DATA lowLanes<>+0(SB)/8, $-1
DATA lowLanes<>+8(SB)/8, $-1
DATA lowLanes<>+16(SB)/8, $0
DATA lowLanes<>+24(SB)/8, $0
GLOBL lowLanes<>(SB), RODATA|NOPTR, $32

// How many bits are set in a number below 16.
DATA bitsSet<>+0(SB)/8, $0x0302020102010100
DATA bitsSet<>+8(SB)/8, $0x0403030203020201
DATA bitsSet<>+16(SB)/8, $0x0302020102010100
DATA bitsSet<>+24(SB)/8, $0x0403030203020201
GLOBL bitsSet<>(SB), RODATA|NOPTR, $32

DATA lowNibbles<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA lowNibbles<>+8(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA lowNibbles<>+16(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA lowNibbles<>+24(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL lowNibbles<>(SB), RODATA|NOPTR, $32

// What brings the pairs of classes that two packs leave as 0, 4, 8, 12, 2, 6, 10, 14 into their order.
DATA pairOrder<>+0(SB)/8, $0x0000000400000000
DATA pairOrder<>+8(SB)/8, $0x0000000500000001
DATA pairOrder<>+16(SB)/8, $0x0000000600000002
DATA pairOrder<>+24(SB)/8, $0x0000000700000003
GLOBL pairOrder<>(SB), RODATA|NOPTR, $32

// COUNT replaces each lane by the number of bits that are set in it.
#define COUNT(m) \
	VPAND   Y13, m, Y6   \
	VPSRLW  $4, m, m     \
	VPAND   Y13, m, m    \
	VPSHUFB Y6, Y12, Y6  \
	VPSHUFB m, Y12, m    \
	VPADDB  Y6, m, m     \
	VPSADBW Y15, m, m

// func rankAVX2(members *[spanRows][classCount]uint64, before *[spanRows][classCount]uint16, totals *[classCount]uint16,
//	planes *[4][spanRows]uint64, rows int)
TEXT ·rankAVX2(SB), NOSPLIT, $0-40
	MOVQ    members+0(FP), DI
	MOVQ    before+8(FP), SI
	MOVQ    totals+16(FP), BX
	MOVQ    planes+24(FP), DX
	MOVQ    rows+32(FP), CX
	VMOVDQU evenLanes<>(SB), Y8
	VMOVDQU lowLanes<>(SB), Y9
	VMOVDQU pairOrder<>(SB), Y10
	VMOVDQU bitsSet<>(SB), Y12
	VMOVDQU lowNibbles<>(SB), Y13
	VPXOR   Y14, Y14, Y14 // words of each class so far
	VPXOR   Y15, Y15, Y15

rank:
	VMOVDQU      Y14, (SI)
	VPBROADCASTQ (DX), Y0
	VPBROADCASTQ 512(DX), Y1
	VPBROADCASTQ 1024(DX), Y2
	VPBROADCASTQ 1536(DX), Y3
	VPXOR        Y8, Y0, Y0
	VPXOR        Y9, Y1, Y1
	VPAND        Y0, Y1, Y1
	VPANDN       Y1, Y2, Y0
	VPAND        Y1, Y2, Y1
	VPAND        Y0, Y3, Y2
	VPANDN       Y0, Y3, Y0
	VPANDN       Y1, Y3, Y4
	VPAND        Y1, Y3, Y3
	VMOVDQU      Y0, (DI)
	VMOVDQU      Y4, 32(DI)
	VMOVDQU      Y2, 64(DI)
	VMOVDQU      Y3, 96(DI)
	COUNT(Y0)
	COUNT(Y4)
	COUNT(Y2)
	COUNT(Y3)
	VPACKUSDW    Y4, Y0, Y0
	VPACKUSDW    Y3, Y2, Y2
	VPACKUSDW    Y2, Y0, Y0
	VPERMD       Y0, Y10, Y0
	VPADDW       Y0, Y14, Y14
	SUBQ         $-128, DI
	ADDQ         $32, SI
	ADDQ         $8, DX
	DECQ         CX
	JNZ          rank
	VMOVDQU      Y14, (BX)
	VZEROUPPER
	RET

// PLACE lists the lowest bit that is set in AX, of the row that begins at CX, and clears it.
#define PLACE(at) \
	TZCNTQ AX, R8     \
	BLSRQ  AX, AX     \
	ADDL   CX, R8     \
	MOVW   R8, at(DI)

// func listBMI1(places *[spanWords + rowWords]uint16, changed *uint64, rows int) int
TEXT ·listBMI1(SB), NOSPLIT, $0-32
	MOVQ places+0(FP), DI
	MOVQ changed+8(FP), DX
	MOVQ rows+16(FP), BX
	MOVQ DI, R9
	XORL CX, CX

row:
	MOVQ    (DX), AX
	POPCNTQ AX, R10
	LEAQ    (DI)(R10*2), R11

four:
	PLACE(0)
	PLACE(2)
	PLACE(4)
	PLACE(6)
	ADDQ $8, DI
	CMPQ DI, R11
	JCS  four
	MOVQ R11, DI
	ADDQ $8, DX
	ADDL $64, CX
	DECQ BX
	JNZ  row
	SUBQ R9, DI
	SHRQ $1, DI
	MOVQ DI, ret+24(FP)
	RET
