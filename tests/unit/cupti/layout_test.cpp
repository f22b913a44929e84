// Our offsets are those of NVIDIA's header.
#include <aon/external_id.h>
#include <cupti.h>
#include <gtest/gtest.h>

#include "plugins/cupti/interface.h"

namespace aon::cupti {
namespace {

#define EXPECT_OFFSET(Type, field, ours) EXPECT_EQ(offsetof(Type, field), ours) << #field

TEST(Layout, of_kernels_is_nvidias) {
  EXPECT_OFFSET(CUpti_ActivityKernel10, registersPerThread, kernel::kRegisters);
  EXPECT_OFFSET(CUpti_ActivityKernel10, start, kernel::kStart);
  EXPECT_OFFSET(CUpti_ActivityKernel10, end, kernel::kEnd);
  EXPECT_OFFSET(CUpti_ActivityKernel10, deviceId, kernel::kDevice);
  EXPECT_OFFSET(CUpti_ActivityKernel10, contextId, kernel::kContext);
  EXPECT_OFFSET(CUpti_ActivityKernel10, streamId, kernel::kStream);
  EXPECT_OFFSET(CUpti_ActivityKernel10, gridX, kernel::kGrid);
  EXPECT_OFFSET(CUpti_ActivityKernel10, blockX, kernel::kBlock);
  EXPECT_OFFSET(CUpti_ActivityKernel10, staticSharedMemory, kernel::kStaticShared);
  EXPECT_OFFSET(CUpti_ActivityKernel10, dynamicSharedMemory, kernel::kDynamicShared);
  EXPECT_OFFSET(CUpti_ActivityKernel10, correlationId, kernel::kCorrelation);
  EXPECT_OFFSET(CUpti_ActivityKernel10, name, kernel::kName);
  EXPECT_OFFSET(CUpti_ActivityKernel10, graphNodeId, kernel::kGraphNode);
  EXPECT_OFFSET(CUpti_ActivityKernel10, graphId, kernel::kGraph);
}

TEST(Layout, of_copies_and_sets_is_nvidias) {
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, copyKind, memcpy1::kCopyKind);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, srcKind, memcpy1::kFrom);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, dstKind, memcpy1::kTo);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, bytes, memcpy1::kBytes);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, start, memcpy1::kStart);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, end, memcpy1::kEnd);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, deviceId, memcpy1::kDevice);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, streamId, memcpy1::kStream);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, correlationId, memcpy1::kCorrelation);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, graphNodeId, memcpy1::kGraphNode);
  EXPECT_OFFSET(CUpti_ActivityMemcpy6, graphId, memcpy1::kGraph);
  EXPECT_OFFSET(CUpti_ActivityMemcpyPtoP4, streamId, memcpy1::kStream);
  EXPECT_OFFSET(CUpti_ActivityMemcpyPtoP4, correlationId, memcpy2::kCorrelation);
  EXPECT_OFFSET(CUpti_ActivityMemcpyPtoP4, graphNodeId, memcpy2::kGraphNode);
  EXPECT_OFFSET(CUpti_ActivityMemcpyPtoP4, graphId, memcpy2::kGraph);
  EXPECT_OFFSET(CUpti_ActivityMemset4, bytes, set::kBytes);
  EXPECT_OFFSET(CUpti_ActivityMemset4, start, set::kStart);
  EXPECT_OFFSET(CUpti_ActivityMemset4, end, set::kEnd);
  EXPECT_OFFSET(CUpti_ActivityMemset4, deviceId, set::kDevice);
  EXPECT_OFFSET(CUpti_ActivityMemset4, streamId, set::kStream);
  EXPECT_OFFSET(CUpti_ActivityMemset4, correlationId, set::kCorrelation);
  EXPECT_OFFSET(CUpti_ActivityMemset4, memoryKind, set::kMemory);
  EXPECT_OFFSET(CUpti_ActivityMemset4, graphId, set::kGraph);
}

TEST(Layout, of_the_other_records_is_nvidias) {
  EXPECT_OFFSET(CUpti_ActivityAPI, cbid, api::kFunction);
  EXPECT_OFFSET(CUpti_ActivityAPI, start, api::kStart);
  EXPECT_OFFSET(CUpti_ActivityAPI, end, api::kEnd);
  EXPECT_OFFSET(CUpti_ActivityAPI, threadId, api::kThread);
  EXPECT_OFFSET(CUpti_ActivityAPI, correlationId, api::kCorrelation);
  EXPECT_OFFSET(CUpti_ActivityAPI, returnValue, api::kResult);
  EXPECT_OFFSET(CUpti_ActivityGraphTrace2, correlationId, graph::kCorrelation);
  EXPECT_OFFSET(CUpti_ActivityGraphTrace2, start, graph::kStart);
  EXPECT_OFFSET(CUpti_ActivityGraphTrace2, deviceId, graph::kDevice);
  EXPECT_OFFSET(CUpti_ActivityGraphTrace2, graphId, graph::kGraph);
  EXPECT_OFFSET(CUpti_ActivityGraphTrace2, contextId, graph::kContext);
  EXPECT_OFFSET(CUpti_ActivityGraphTrace2, streamId, graph::kStream);
  EXPECT_OFFSET(CUpti_ActivitySynchronization2, type, synchronization::kType);
  EXPECT_OFFSET(CUpti_ActivitySynchronization2, start, synchronization::kStart);
  EXPECT_OFFSET(CUpti_ActivitySynchronization2, correlationId, synchronization::kCorrelation);
  EXPECT_OFFSET(CUpti_ActivitySynchronization2, contextId, synchronization::kContext);
  EXPECT_OFFSET(CUpti_ActivityOverhead3, overheadKind, overhead::kType);
  EXPECT_OFFSET(CUpti_ActivityOverhead3, start, overhead::kStart);
  EXPECT_OFFSET(CUpti_ActivityOverhead3, objectKind, overhead::kObject);
  EXPECT_OFFSET(CUpti_ActivityOverhead3, objectId.pt.threadId, overhead::kThread);
  EXPECT_EQ(static_cast<uint32_t>(CUPTI_ACTIVITY_OBJECT_THREAD), overhead::kThreadObject);
  EXPECT_OFFSET(CUpti_ActivityOverhead3, end, overhead::kEnd);
  EXPECT_OFFSET(CUpti_ActivityExternalCorrelation, externalKind, external::kKind);
  EXPECT_OFFSET(CUpti_ActivityExternalCorrelation, externalId, external::kId);
  EXPECT_OFFSET(CUpti_ActivityExternalCorrelation, correlationId, external::kCorrelation);
}

TEST(Layout, kinds_of_external_ids_are_nvidias) {
  EXPECT_EQ(int{CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN}, int(ExternalKind::kUnknown));
  EXPECT_EQ(int{CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC}, int(ExternalKind::kOpenAcc));
  EXPECT_EQ(int{CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0}, int(ExternalKind::kCustom0));
  EXPECT_EQ(int{CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1}, int(ExternalKind::kCustom1));
  EXPECT_EQ(int{CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2}, int(ExternalKind::kCustom2));
  EXPECT_EQ(uint32_t{CUPTI_EXTERNAL_CORRELATION_KIND_SIZE}, kExternalKindCount);
}

TEST(Layout, numbers_are_nvidias) {
  EXPECT_EQ(static_cast<int>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
            static_cast<int>(Kind::kConcurrentKernel));
  EXPECT_EQ(static_cast<int>(CUPTI_ACTIVITY_KIND_GRAPH_TRACE), static_cast<int>(Kind::kGraphTrace));
  EXPECT_EQ(static_cast<int>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION),
            static_cast<int>(Kind::kSynchronization));
  EXPECT_EQ(static_cast<int>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION),
            static_cast<int>(Kind::kExternalCorrelation));
  EXPECT_EQ(static_cast<int>(CUPTI_ACTIVITY_KIND_MEMCPY2), static_cast<int>(Kind::kMemcpy2));
  EXPECT_EQ(static_cast<int>(CUPTI_ACTIVITY_KIND_OVERHEAD), static_cast<int>(Kind::kOverhead));
  EXPECT_EQ(static_cast<int>(CUPTI_CB_DOMAIN_STATE), kStateDomain);
  EXPECT_EQ(static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API), kDriverDomain);
  EXPECT_EQ(static_cast<int>(CUPTI_CB_DOMAIN_RUNTIME_API), kRuntimeDomain);
  EXPECT_EQ(static_cast<uint32_t>(CUPTI_CBID_STATE_FATAL_ERROR), kFatalError);
  EXPECT_EQ(static_cast<int>(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED), kSubscribed);
}

TEST(Layout, of_subscriptions_is_nvidias) {
  EXPECT_OFFSET(CUpti_CallbackData, callbackSite, call_data::kSite);
  EXPECT_OFFSET(CUpti_CallbackData, functionParams, call_data::kParameters);
  EXPECT_OFFSET(CUpti_SubscriberParams, subscriberName, offsetof(SubscriberParams, name));
  EXPECT_OFFSET(CUpti_SubscriberParams, oldSubscriberName, offsetof(SubscriberParams, old_name));
  EXPECT_OFFSET(CUpti_SubscriberParams, oldSubscriberSize,
                offsetof(SubscriberParams, old_name_bytes));
#if CUPTI_API_VERSION < 130200
  EXPECT_EQ(size_t{CUpti_SubscriberParams_STRUCT_SIZE}, kLoneSubscriberBytes);
#elif CUPTI_API_VERSION >= 130300
  EXPECT_OFFSET(CUpti_SubscriberParams, allowMultipleSubscribers,
                offsetof(SubscriberParams, allows_others));
  EXPECT_EQ(sizeof(CUpti_SubscriberParams), sizeof(SubscriberParams));
  EXPECT_EQ(int{CUPTI_ACTIVITY_ATTR_ENABLE_ALL_SYNC_RECORDS}, int(Attribute::kAllSyncRecords));
  EXPECT_EQ(int{CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE},
            int(Attribute::kGraphsAsOne));
  EXPECT_EQ(int{CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE}, int(Attribute::kThreadIdType));
#endif
  EXPECT_EQ(int{CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER}, int(Attribute::kZeroedBuffers));
  EXPECT_EQ(int{CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED},
            int(Attribute::kPinnedBuffers));
}

}  // namespace
}  // namespace aon::cupti
