/* Kernels of the programs of this folder, as PTX: the driver compiles them. Each is an entry
 * `NAME(out, rounds)` and writes to `out` only what never is. kSpin does nothing but fp32
 * arithmetic, some 26 cycles a round; kMatrix, from Ampere on, keeps the tensor pipes busy. */
#include "tests/gpu/driver.h"

#define PTX_ENTRY(name) ".visible .entry " name "(.param .u64 out, .param .u64 rounds)\n{\n"
#define PTX_LOOP_BEGIN                                                       \
  "ld.param.u64 %r1, [out];\nld.param.u64 %r2, [rounds];\nmov.u64 %r3, 0;\n" \
  "LOOP:\n"
#define PTX_LOOP_END "add.u64 %r3, %r3, 1;\nsetp.lt.u64 %p1, %r3, %r2;\n@%p1 bra LOOP;\n"
#define PTX_KEEP_F1 "setp.eq.f32 %p2, %f1, 0f7F7FFFFF;\n@%p2 st.global.f32 [%r1], %f1;\nret;\n}\n"
#define PTX_FMA "fma.rn.f32 %f1, %f1, %f2, %f2;\n"
#define PTX_SPIN(name)                                                                          \
  PTX_ENTRY(name)                                                                               \
  ".reg .pred %p<3>;\n.reg .f32 %f<3>;\n.reg .b64 %r<4>;\n"                                     \
  "mov.f32 %f1, 0f3F800001;\nmov.f32 %f2, 0f3F7FFFFF;\n" PTX_LOOP_BEGIN PTX_FMA PTX_FMA PTX_FMA \
      PTX_FMA PTX_LOOP_END PTX_KEEP_F1

const char kSpin[] = ".version 6.3\n.target sm_75\n.address_size 64\n" PTX_SPIN("spin")
    PTX_SPIN("spin_longer") PTX_SPIN("hold") PTX_ENTRY("nothing") "ret;\n}\n";

/* A warp multiplies 16x16 by 16x8 into four sums, one after the other. */
#define PTX_MULTIPLY(sum)                                  \
  "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " sum \
  ", {%a1,%a2,%a3,%a4}, "                                  \
  "{%a5,%a6}, " sum ";\n"
#define PTX_COPY_TID(to) "mov.u32 " to ", %tid.x;\n"
#define PTX_ZERO(c) "mov.f32 " c ", 0f00000000;\n"
#define PTX_ZEROS(c1, c2, c3, c4) PTX_ZERO(c1) PTX_ZERO(c2) PTX_ZERO(c3) PTX_ZERO(c4)
#define PTX_ADD(c) "add.f32 %f1, %f1, " c ";\n"

const char kMatrix[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    PTX_ENTRY("matrix")
    ".reg .pred %p<3>;\n.reg .b32 %a<7>;\n.reg .f32 %c<17>;\n.reg .f32 %f<2>;\n.reg .b64 %r<4>;\n"
    PTX_COPY_TID("%a1") PTX_COPY_TID("%a2") PTX_COPY_TID("%a3") PTX_COPY_TID("%a4")
    PTX_COPY_TID("%a5") PTX_COPY_TID("%a6") PTX_ZERO("%f1")
    PTX_ZEROS("%c1", "%c2", "%c3", "%c4") PTX_ZEROS("%c5", "%c6", "%c7", "%c8")
    PTX_ZEROS("%c9", "%c10", "%c11", "%c12") PTX_ZEROS("%c13", "%c14", "%c15", "%c16")
    PTX_LOOP_BEGIN
    PTX_MULTIPLY("{%c1,%c2,%c3,%c4}") PTX_MULTIPLY("{%c5,%c6,%c7,%c8}")
    PTX_MULTIPLY("{%c9,%c10,%c11,%c12}") PTX_MULTIPLY("{%c13,%c14,%c15,%c16}")
    PTX_LOOP_END
    PTX_ADD("%c1") PTX_ADD("%c5") PTX_ADD("%c9") PTX_ADD("%c13") PTX_KEEP_F1;
