#include "textflag.h"

// SEARCH goes on by half of the rows that are left when the words before them are no more than the rank in AX.
#define SEARCH(bytes) \
	LEAQ    bytes(R8), R9 \
	CMPW    AX, (R9)      \
	CMOVQCC R9, R8

// func findBMI2(places *uint16, ranks *uint32, n int, begin, end uint32, before *uint16, members *uint64) int
TEXT ·findBMI2(SB), NOSPLIT, $0-56
	MOVQ places+0(FP), DI
	MOVQ ranks+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL begin+24(FP), R10
	MOVQ before+32(FP), R11
	MOVQ members+40(FP), R12
	MOVL end+28(FP), DX
	MOVQ DI, BX
	MOVL $1, R13

find:
	MOVL    (SI), AX
	CMPL    AX, DX
	JCC     found
	SUBL    R10, AX
	MOVQ    R11, R8
	SEARCH(32*32)
	SEARCH(16*32)
	SEARCH(8*32)
	SEARCH(4*32)
	SEARCH(2*32)
	SEARCH(1*32)
	MOVWLZX (R8), R9
	SUBQ    R11, R8
	SUBL    R9, AX
	SHLXQ   AX, R13, R9
	PDEPQ   (R12)(R8*4), R9, R9
	TZCNTQ  R9, R9
	LEAQ    (R9)(R8*2), R9
	MOVW    R9, (DI)
	ADDQ    $4, SI
	ADDQ    $2, DI
	DECQ    CX
	JNZ     find

found:
	SUBQ BX, DI
	SHRQ $1, DI
	MOVQ DI, ret+48(FP)
	RET
