#include "textflag.h"

// Kernels for AVX-512 (F, BW, VPOPCNTDQ, VBMI2). What they do is said in kernel.go and done in Go in kernel_go.go.

// func diff8AVX512(changed *uint64, old, new *byte, rows int)
TEXT ·diff8AVX512(SB), NOSPLIT, $0-32
	MOVQ changed+0(FP), DX
	MOVQ old+8(FP), SI
	MOVQ new+16(FP), DI
	MOVQ rows+24(FP), CX

diff8:
	VMOVDQU64 (SI), Z0
	VPCMPUB   $4, (DI), Z0, K1
	KMOVQ     K1, (DX)
	ADDQ      $64, SI
	ADDQ      $64, DI
	ADDQ      $8, DX
	DECQ      CX
	JNZ       diff8
	VZEROUPPER
	RET

// func diff16AVX512(changed *uint64, old, new *byte, rows int)
TEXT ·diff16AVX512(SB), NOSPLIT, $0-32
	MOVQ changed+0(FP), DX
	MOVQ old+8(FP), SI
	MOVQ new+16(FP), DI
	MOVQ rows+24(FP), CX

diff16:
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VPCMPUW   $4, (DI), Z0, K1
	VPCMPUW   $4, 64(DI), Z1, K2
	KUNPCKDQ  K1, K2, K1
	KMOVQ     K1, (DX)
	ADDQ      $128, SI
	ADDQ      $128, DI
	ADDQ      $8, DX
	DECQ      CX
	JNZ       diff16
	VZEROUPPER
	RET

// func sort8AVX512(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)
TEXT ·sort8AVX512(SB), NOSPLIT, $0-32
	MOVQ         planes+0(FP), DX
	MOVQ         words+8(FP), SI
	MOVQ         rule+16(FP), AX
	MOVQ         rows+24(FP), CX
	VMOVQ        (AX), X16
	VPBROADCASTB 8(AX), Z17
	VPBROADCASTB 16(AX), Z18
	MOVL         $15, AX
	VPBROADCASTB AX, Z19
	MOVL         $1, AX
	VPBROADCASTB AX, Z20
	MOVL         $2, AX
	VPBROADCASTB AX, Z21
	MOVL         $4, AX
	VPBROADCASTB AX, Z22
	MOVL         $8, AX
	VPBROADCASTB AX, Z23

sort8:
	VMOVDQU64 (SI), Z0
	VPSRLW    X16, Z0, Z0
	VPANDQ    Z17, Z0, Z0
	VPSUBUSB  Z18, Z0, Z0
	VPMINUB   Z19, Z0, Z0
	VPTESTMB  Z20, Z0, K1
	VPTESTMB  Z21, Z0, K2
	VPTESTMB  Z22, Z0, K3
	VPTESTMB  Z23, Z0, K4
	KMOVQ     K1, (DX)
	KMOVQ     K2, 512(DX)
	KMOVQ     K3, 1024(DX)
	KMOVQ     K4, 1536(DX)
	ADDQ      $64, SI
	ADDQ      $8, DX
	DECQ      CX
	JNZ       sort8
	VZEROUPPER
	RET

// func sort16AVX512(planes *[4][spanRows]uint64, words *byte, rule *sortRule, rows int)
TEXT ·sort16AVX512(SB), NOSPLIT, $0-32
	MOVQ         planes+0(FP), DX
	MOVQ         words+8(FP), SI
	MOVQ         rule+16(FP), AX
	MOVQ         rows+24(FP), CX
	VMOVQ        (AX), X16
	VPBROADCASTW 8(AX), Z17
	VPBROADCASTW 16(AX), Z18
	MOVL         $15, AX
	VPBROADCASTW AX, Z19
	MOVL         $1, AX
	VPBROADCASTW AX, Z20
	MOVL         $2, AX
	VPBROADCASTW AX, Z21
	MOVL         $4, AX
	VPBROADCASTW AX, Z22
	MOVL         $8, AX
	VPBROADCASTW AX, Z23

sort16:
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VPSRLW    X16, Z0, Z0
	VPSRLW    X16, Z1, Z1
	VPANDQ    Z17, Z0, Z0
	VPANDQ    Z17, Z1, Z1
	VPSUBUSW  Z18, Z0, Z0
	VPSUBUSW  Z18, Z1, Z1
	VPMINUW   Z19, Z0, Z0
	VPMINUW   Z19, Z1, Z1
	VPTESTMW  Z20, Z0, K1
	VPTESTMW  Z20, Z1, K2
	VPTESTMW  Z21, Z0, K3
	VPTESTMW  Z21, Z1, K4
	KUNPCKDQ  K1, K2, K1
	KUNPCKDQ  K3, K4, K3
	KMOVQ     K1, (DX)
	KMOVQ     K3, 512(DX)
	VPTESTMW  Z22, Z0, K1
	VPTESTMW  Z22, Z1, K2
	VPTESTMW  Z23, Z0, K3
	VPTESTMW  Z23, Z1, K4
	KUNPCKDQ  K1, K2, K1
	KUNPCKDQ  K3, K4, K3
	KMOVQ     K1, 1024(DX)
	KMOVQ     K3, 1536(DX)
	ADDQ      $128, SI
	ADDQ      $8, DX
	DECQ      CX
	JNZ       sort16
	VZEROUPPER
	RET

// Lanes stand for classes 0 to 7, or 8 to 15, which have the same lower bits: set where the bit of the class is 0.
DATA noBit0<>+0(SB)/8, $-1
DATA noBit0<>+8(SB)/8, $0
DATA noBit0<>+16(SB)/8, $-1
DATA noBit0<>+24(SB)/8, $0
DATA noBit0<>+32(SB)/8, $-1
DATA noBit0<>+40(SB)/8, $0
DATA noBit0<>+48(SB)/8, $-1
DATA noBit0<>+56(SB)/8, $0
GLOBL noBit0<>(SB), RODATA|NOPTR, $64

DATA noBit1<>+0(SB)/8, $-1
DATA noBit1<>+8(SB)/8, $-1
DATA noBit1<>+16(SB)/8, $0
DATA noBit1<>+24(SB)/8, $0
DATA noBit1<>+32(SB)/8, $-1
DATA noBit1<>+40(SB)/8, $-1
DATA noBit1<>+48(SB)/8, $0
DATA noBit1<>+56(SB)/8, $0
GLOBL noBit1<>(SB), RODATA|NOPTR, $64

DATA noBit2<>+0(SB)/8, $-1
DATA noBit2<>+8(SB)/8, $-1
DATA noBit2<>+16(SB)/8, $-1
DATA noBit2<>+24(SB)/8, $-1
DATA noBit2<>+32(SB)/8, $0
DATA noBit2<>+40(SB)/8, $0
DATA noBit2<>+48(SB)/8, $0
DATA noBit2<>+56(SB)/8, $0
GLOBL noBit2<>(SB), RODATA|NOPTR, $64

// func rankAVX512(members *[spanRows][classCount]uint64, before *[spanRows][classCount]uint16, totals *[classCount]uint16,
//	planes *[4][spanRows]uint64, rows int)
TEXT ·rankAVX512(SB), NOSPLIT, $0-40
	MOVQ      members+0(FP), DI
	MOVQ      before+8(FP), SI
	MOVQ      totals+16(FP), BX
	MOVQ      planes+24(FP), DX
	MOVQ      rows+32(FP), CX
	VMOVDQU64 noBit0<>(SB), Z16
	VMOVDQU64 noBit1<>(SB), Z17
	VMOVDQU64 noBit2<>(SB), Z18
	VPXORQ    Z20, Z20, Z20 // words of classes 0 to 7 so far
	VPXORQ    Z21, Z21, Z21

rank:
	VPMOVQW         Z20, (SI)
	VPMOVQW         Z21, 16(SI)
	VPXORQ.BCST     (DX), Z16, Z0
	VPBROADCASTQ    512(DX), Z1
	VPBROADCASTQ    1024(DX), Z2
	VPBROADCASTQ    1536(DX), Z3
	VPTERNLOGQ      $0x60, Z1, Z17, Z0 // and it is not the same
	VPTERNLOGQ      $0x60, Z2, Z18, Z0
	VPANDNQ         Z0, Z3, Z1
	VPANDQ          Z0, Z3, Z2
	VMOVDQU64       Z1, (DI)
	VMOVDQU64       Z2, 64(DI)
	VPOPCNTQ        Z1, Z1
	VPOPCNTQ        Z2, Z2
	VPADDQ          Z1, Z20, Z20
	VPADDQ          Z2, Z21, Z21
	ADDQ            $128, DI
	ADDQ            $32, SI
	ADDQ            $8, DX
	DECQ            CX
	JNZ             rank
	VPMOVQW         Z20, (BX)
	VPMOVQW         Z21, 16(BX)
	VZEROUPPER
	RET

DATA upTo31<>+0(SB)/8, $0x0003000200010000
DATA upTo31<>+8(SB)/8, $0x0007000600050004
DATA upTo31<>+16(SB)/8, $0x000b000a00090008
DATA upTo31<>+24(SB)/8, $0x000f000e000d000c
DATA upTo31<>+32(SB)/8, $0x0013001200110010
DATA upTo31<>+40(SB)/8, $0x0017001600150014
DATA upTo31<>+48(SB)/8, $0x001b001a00190018
DATA upTo31<>+56(SB)/8, $0x001f001e001d001c
GLOBL upTo31<>(SB), RODATA|NOPTR, $64

// func listAVX512(places *[spanWords + rowWords]uint16, changed *uint64, rows int) int
TEXT ·listAVX512(SB), NOSPLIT, $0-32
	MOVQ         places+0(FP), DI
	MOVQ         changed+8(FP), DX
	MOVQ         rows+16(FP), CX
	MOVQ         DI, R9
	VMOVDQU64    upTo31<>(SB), Z0
	MOVL         $32, AX
	VPBROADCASTW AX, Z2
	VPADDW       Z2, Z0, Z1
	VPADDW       Z2, Z2, Z2

list:
	MOVQ         (DX), AX
	KMOVQ        AX, K1
	KSHIFTRQ     $32, K1, K2
	VPCOMPRESSW  Z0, K1, Z3
	VPCOMPRESSW  Z1, K2, Z4
	POPCNTL      AX, R8
	SHRQ         $32, AX
	POPCNTL      AX, R10
	VMOVDQU64    Z3, (DI)
	LEAQ         (DI)(R8*2), DI
	VMOVDQU64    Z4, (DI)
	LEAQ         (DI)(R10*2), DI
	VPADDW       Z2, Z0, Z0
	VPADDW       Z2, Z1, Z1
	ADDQ         $8, DX
	DECQ         CX
	JNZ          list
	SUBQ         R9, DI
	SHRQ         $1, DI
	MOVQ         DI, ret+24(FP)
	VZEROUPPER
	RET
