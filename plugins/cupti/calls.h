/// Which calls of CUDA are recorded: those that start work of a device or wait for it, those that
/// begin and end a capture, into which launches run nothing, and nothing that programs call in
/// passing. Work is known by its call, so one that is not here makes work without one.
///
/// Source: cupti_driver_cbid.h and cupti_runtime_cbid.h of CUDA 13.0; numbers never change, and a
/// version does not know those of later ones. `tests/unit/cupti` compares them with NVIDIA's
/// library, where it is installed.
/// Depends on nothing.
#pragma once

#include <cstdint>

namespace aon::cupti {

enum class Does : uint8_t { kOther = 0, kLaunch, kLaunchGraph, kCapture, kEndCapture };

struct Call {
  uint32_t id;
  uint32_t per_thread_id;  ///< the same for streams of one thread each (_ptsz, _ptds); 0: none
  Does does = Does::kOther;
};

constexpr Call kDriverCalls[] = {
    {307, 442, Does::kLaunch},       // cuLaunchKernel
    {652, 653, Does::kLaunch},       // cuLaunchKernelEx
    {477, 478, Does::kLaunch},       // cuLaunchCooperativeKernel
    {480, 0, Does::kLaunch},         // cuLaunchCooperativeKernelMultiDevice
    {514, 515, Does::kLaunchGraph},  // cuGraphLaunch
    {495, 496, Does::kCapture},      // cuStreamBeginCapture
    {539, 540, Does::kCapture},      // cuStreamBeginCapture_v2
    {720, 721, Does::kCapture},      // cuStreamBeginCaptureToGraph
    {497, 498, Does::kEndCapture},   // cuStreamEndCapture
    {305, 408},                      // cuMemcpy
    {248, 0},                        // cuMemcpy_v2
    {306, 418},                      // cuMemcpyAsync
    {276, 397},                      // cuMemcpyHtoD_v2
    {277, 421},                      // cuMemcpyHtoDAsync_v2
    {278, 398},                      // cuMemcpyDtoH_v2
    {279, 422},                      // cuMemcpyDtoHAsync_v2
    {280, 399},                      // cuMemcpyDtoD_v2
    {281, 423},                      // cuMemcpyDtoDAsync_v2
    {292, 402},                      // cuMemcpyHtoA_v2
    {293, 419},                      // cuMemcpyHtoAAsync_v2
    {282, 403},                      // cuMemcpyAtoH_v2
    {283, 420},                      // cuMemcpyAtoHAsync_v2
    {285, 400},                      // cuMemcpyDtoA_v2
    {284, 401},                      // cuMemcpyAtoD_v2
    {286, 404},                      // cuMemcpyAtoA_v2
    {287, 405},                      // cuMemcpy2D_v2
    {288, 406},                      // cuMemcpy2DUnaligned_v2
    {289, 424},                      // cuMemcpy2DAsync_v2
    {290, 407},                      // cuMemcpy3D_v2
    {291, 425},                      // cuMemcpy3DAsync_v2
    {318, 409},                      // cuMemcpyPeer
    {319, 426},                      // cuMemcpyPeerAsync
    {320, 410},                      // cuMemcpy3DPeer
    {321, 427},                      // cuMemcpy3DPeerAsync
    {776, 777},                      // cuMemcpyBatchAsync
    {796, 797},                      // cuMemcpyBatchAsync_v2
    {778, 779},                      // cuMemcpy3DBatchAsync
    {798, 799},                      // cuMemcpy3DBatchAsync_v2
    {249, 411},                      // cuMemsetD8_v2
    {216, 428},                      // cuMemsetD8Async
    {250, 412},                      // cuMemsetD16_v2
    {218, 429},                      // cuMemsetD16Async
    {251, 413},                      // cuMemsetD32_v2
    {220, 430},                      // cuMemsetD32Async
    {252, 414},                      // cuMemsetD2D8_v2
    {222, 431},                      // cuMemsetD2D8Async
    {253, 415},                      // cuMemsetD2D16_v2
    {224, 432},                      // cuMemsetD2D16Async
    {254, 416},                      // cuMemsetD2D32_v2
    {226, 433},                      // cuMemsetD2D32Async
    {126, 440},                      // cuStreamSynchronize
    {17, 0},                         // cuCtxSynchronize
    {800, 0},                        // cuCtxSynchronize_v2
    {121, 0},                        // cuEventSynchronize
};

constexpr Call kRuntimeCalls[] = {
    {211, 214, Does::kLaunch},       // cudaLaunchKernel
    {505, 506, Does::kLaunch},       // __cudaLaunchKernel
    {430, 431, Does::kLaunch},       // cudaLaunchKernelExC
    {269, 270, Does::kLaunch},       // cudaLaunchCooperativeKernel
    {272, 0, Does::kLaunch},         // cudaLaunchCooperativeKernelMultiDevice
    {311, 312, Does::kLaunchGraph},  // cudaGraphLaunch
    {315, 316, Does::kCapture},      // cudaStreamBeginCapture
    {452, 453, Does::kCapture},      // cudaStreamBeginCaptureToGraph
    {319, 320, Does::kEndCapture},   // cudaStreamEndCapture
    {31, 215},                       // cudaMemcpy
    {41, 225},                       // cudaMemcpyAsync
    {39, 223},                       // cudaMemcpyToSymbol
    {47, 231},                       // cudaMemcpyToSymbolAsync
    {40, 224},                       // cudaMemcpyFromSymbol
    {48, 232},                       // cudaMemcpyFromSymbolAsync
    {33, 217},                       // cudaMemcpyToArray
    {42, 226},                       // cudaMemcpyToArrayAsync
    {35, 219},                       // cudaMemcpyFromArray
    {43, 227},                       // cudaMemcpyFromArrayAsync
    {37, 221},                       // cudaMemcpyArrayToArray
    {32, 216},                       // cudaMemcpy2D
    {44, 228},                       // cudaMemcpy2DAsync
    {34, 218},                       // cudaMemcpy2DToArray
    {45, 229},                       // cudaMemcpy2DToArrayAsync
    {36, 220},                       // cudaMemcpy2DFromArray
    {46, 230},                       // cudaMemcpy2DFromArrayAsync
    {38, 222},                       // cudaMemcpy2DArrayToArray
    {144, 245},                      // cudaMemcpy3D
    {145, 246},                      // cudaMemcpy3DAsync
    {160, 0},                        // cudaMemcpyPeer
    {161, 0},                        // cudaMemcpyPeerAsync
    {162, 249},                      // cudaMemcpy3DPeer
    {163, 250},                      // cudaMemcpy3DPeerAsync
    {482, 483},                      // cudaMemcpyBatchAsync_v12080
    {509, 510},                      // cudaMemcpyBatchAsync_v13000
    {484, 485},                      // cudaMemcpy3DBatchAsync_v12080
    {511, 512},                      // cudaMemcpy3DBatchAsync_v13000
    {49, 233},                       // cudaMemset
    {51, 235},                       // cudaMemsetAsync
    {50, 234},                       // cudaMemset2D
    {52, 236},                       // cudaMemset2DAsync
    {142, 243},                      // cudaMemset3D
    {143, 244},                      // cudaMemset3DAsync
    {131, 239},                      // cudaStreamSynchronize
    {165, 0},                        // cudaDeviceSynchronize
    {137, 0},                        // cudaEventSynchronize
};

/// Calls that end a context, and with it what CUPTI has in its memory.
struct ContextEnd {
  bool is_driver_call;
  uint32_t id;
  bool is_release = false;  ///< of one of its uses, of a device that is the first parameter
};
constexpr ContextEnd kContextEnds[] = {
    {true, 11},         // cuCtxDestroy
    {true, 322},        // cuCtxDestroy_v2
    {true, 387, true},  // cuDevicePrimaryCtxRelease
    {true, 544, true},  // cuDevicePrimaryCtxRelease_v2
    {true, 389},        // cuDevicePrimaryCtxReset
    {true, 545},        // cuDevicePrimaryCtxReset_v2
    {false, 164},       // cudaDeviceReset
    {false, 123},       // cudaThreadExit
};

constexpr bool is_context_end(bool is_driver_call, uint32_t id) {
  for (const ContextEnd& end : kContextEnds) {
    if (end.is_driver_call == is_driver_call && end.id == id) return true;
  }
  return false;
}

constexpr bool is_release(bool is_driver_call, uint32_t id) {
  for (const ContextEnd& end : kContextEnds) {
    if (end.is_driver_call == is_driver_call && end.id == id) return end.is_release;
  }
  return false;
}

}  // namespace aon::cupti
