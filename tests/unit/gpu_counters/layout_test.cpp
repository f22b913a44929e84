// Our structures are those of NVIDIA's headers.
#include <cuda.h>
// cuda.h comes first
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <gtest/gtest.h>

#include "plugins/gpu_counters/interface.h"

namespace aon::gpu_counters {
namespace {

#define EXPECT_SIZE(Ours, Theirs) EXPECT_EQ(kSizeOf<Ours>, size_t{Theirs##_STRUCT_SIZE})
#define EXPECT_FIELD(Ours, ours, Theirs, theirs) \
  EXPECT_EQ(offsetof(Ours, ours), offsetof(Theirs, theirs))

TEST(GpuCountersLayout, of_the_hosts_side_is_nvidias) {
  EXPECT_SIZE(SupportedChips, CUpti_Profiler_Host_GetSupportedChips_Params);
  EXPECT_SIZE(HostInitialize, CUpti_Profiler_Host_Initialize_Params);
  EXPECT_FIELD(HostInitialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
  EXPECT_FIELD(HostInitialize, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
  EXPECT_SIZE(HostDeinitialize, CUpti_Profiler_Host_Deinitialize_Params);
  EXPECT_SIZE(AddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params);
  EXPECT_FIELD(AddMetrics, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
  EXPECT_SIZE(ConfigImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params);
  EXPECT_SIZE(ConfigImage, CUpti_Profiler_Host_GetConfigImage_Params);
  EXPECT_FIELD(ConfigImage, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
  EXPECT_SIZE(PassCount, CUpti_Profiler_Host_GetNumOfPasses_Params);
  EXPECT_FIELD(PassCount, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
  EXPECT_SIZE(Evaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
  EXPECT_FIELD(Evaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);
}

TEST(GpuCountersLayout, of_the_samplings_side_is_nvidias) {
  EXPECT_SIZE(Initialize, CUpti_Profiler_Initialize_Params);
  EXPECT_SIZE(ChipName, CUpti_Device_GetChipName_Params);
  EXPECT_SIZE(Availability, CUpti_PmSampling_GetCounterAvailability_Params);
  EXPECT_SIZE(Enable, CUpti_PmSampling_Enable_Params);
  EXPECT_SIZE(OfSampling, CUpti_PmSampling_Disable_Params);
  EXPECT_SIZE(OfSampling, CUpti_PmSampling_Start_Params);
  EXPECT_SIZE(OfSampling, CUpti_PmSampling_Stop_Params);
  EXPECT_SIZE(SetConfig, CUpti_PmSampling_SetConfig_Params);
  EXPECT_FIELD(SetConfig, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
  EXPECT_FIELD(SetConfig, append, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
  EXPECT_SIZE(DataSize, CUpti_PmSampling_GetCounterDataSize_Params);
  EXPECT_FIELD(DataSize, bytes, CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize);
  EXPECT_SIZE(DataInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params);
  EXPECT_SIZE(Decode, CUpti_PmSampling_DecodeData_Params);
  EXPECT_FIELD(Decode, overflow, CUpti_PmSampling_DecodeData_Params, overflow);
  EXPECT_SIZE(DataInfo, CUpti_PmSampling_GetCounterDataInfo_Params);
  EXPECT_SIZE(SampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
  EXPECT_FIELD(SampleInfo, end_ns, CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp);
}

TEST(GpuCountersLayout, numbers_are_nvidias) {
  EXPECT_EQ(kPmSampling, static_cast<int>(CUPTI_PROFILER_TYPE_PM_SAMPLING));
  EXPECT_EQ(kTimeInterval, static_cast<int>(CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL));
  EXPECT_EQ(kKeepLatest,
            static_cast<int>(CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST));
  EXPECT_EQ(kDataFull, static_cast<int>(CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL));
  EXPECT_EQ(kHardwareBusy, static_cast<int>(CUPTI_ERROR_HARDWARE_BUSY));
  EXPECT_EQ(kInsufficientPrivileges, static_cast<int>(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES));
  EXPECT_EQ(kNotSupported, static_cast<int>(CUPTI_ERROR_NOT_SUPPORTED));
  EXPECT_EQ(kInvalidChipName, static_cast<int>(CUPTI_ERROR_INVALID_CHIP_NAME));
  EXPECT_EQ(kNotInitialized, static_cast<int>(CUPTI_ERROR_NOT_INITIALIZED));
}

}  // namespace
}  // namespace aon::gpu_counters
