// Numbers of the fields that are read and written, after protos/perfetto/trace in google/perfetto.
#pragma once

#include <cstdint>

namespace torchtrt_viz::perfetto {

namespace trace_field {
constexpr std::uint32_t kPacket = 1;
}

namespace packet_field {
constexpr std::uint32_t kProcessTree = 2, kChromeEvents = 5, kClockSnapshot = 6, kTimestamp = 8,
                        kSequenceId = 10, kTrackEvent = 11, kInternedData = 12, kSequenceFlags = 13,
                        kStateCleared = 41, kPacketDropped = 42, kProcessDescriptor = 43,
                        kThreadDescriptor = 44, kCompressed = 50, kClockId = 58, kDefaults = 59,
                        kTrackDescriptor = 60, kFirstOnSequence = 87, kZstdCompressed = 133;
// Of GPUs, and of drivers that feed them.
constexpr std::uint32_t kGpuCounters = 52, kGpuRenderStage = 53, kGpuLog = 63, kVulkanApi = 65,
                        kGpuMemory = 71, kGpuFrequency = 129;
}  // namespace packet_field
constexpr std::uint32_t kFlagStateCleared = 1, kFlagNeedsState = 2;

namespace defaults_field {
constexpr std::uint32_t kTrackEvent = 11, kClockId = 58;
}

namespace event_field {
constexpr std::uint32_t kTimeDeltaUs = 1, kCategoryIids = 3, kDebugAnnotations = 4, kTaskExecution = 5,
                        kLegacy = 6, kType = 9, kNameIid = 10, kTrackUuid = 11, kExtraValues = 12,
                        kTimeAbsoluteUs = 16, kLogMessage = 21, kCategories = 22, kName = 23,
                        kCounterValue = 30, kExtraUuids = 31, kSourceLocation = 33, kSourceLocationIid = 34,
                        kFlowIdsOld = 36, kTerminatingOld = 42, kDoubleCounterValue = 44,
                        kExtraDoubleUuids = 45, kExtraDoubleValues = 46, kFlowIds = 47,
                        kTerminatingFlowIds = 48, kCorrelationId = 52, kCorrelationText = 53,
                        kCorrelationTextIid = 54, kGpuCorrelation = 3000;
}
namespace event_type {
constexpr std::uint64_t kUnspecified = 0, kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4;
}
namespace render_stage_field {
constexpr std::uint32_t kEventId = 1, kDuration = 2, kQueueId = 3, kStageId = 4, kContext = 5, kExtraData = 6,
                        kSpecifications = 7, kRenderTarget = 8, kRenderPass = 9, kSubmissionId = 10,
                        kGpuId = 11, kCommandBuffer = 12, kQueueIid = 13, kStageIid = 14, kSubpassMask = 15,
                        kRenderPassInstance = 16, kName = 17, kWaitIds = 18, kKernelIid = 19, kNameIid = 20,
                        kLaunch = 21, kLogicalQueue = 22;
}
namespace legacy_field {
constexpr std::uint32_t kNameIid = 1, kPhase = 2, kDurationUs = 3, kUnscopedId = 6, kIdScope = 7, kBindId = 8,
                        kLocalId = 10, kGlobalId = 11, kPid = 18, kTid = 19;
}

namespace annotation_field {
constexpr std::uint32_t kNameIid = 1, kBool = 2, kUint = 3, kInt = 4, kDouble = 5, kString = 6, kPointer = 7,
                        kNested = 8, kJson = 9, kName = 10, kDict = 11, kArray = 12, kStringIid = 17;
}
namespace nested_field {
constexpr std::uint32_t kType = 1, kKeys = 2, kValues = 3, kItems = 4, kInt = 5, kDouble = 6, kBool = 7,
                        kString = 8;
}

namespace interned_field {
constexpr std::uint32_t kCategories = 1, kNames = 2, kAnnotationNames = 3, kSourceLocations = 4,
                        kLogBodies = 20, kGraphicsContexts = 23, kGpuSpecifications = 24,
                        kAnnotationStrings = 29, kCorrelationTexts = 43, kGpuCounters = 47,
                        kComputeKernels = 1000, kComputeArgumentNames = 1001;
}

namespace descriptor_field {
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8,
                        kStaticName = 10, kChildOrdering = 11, kOrderRank = 12, kAtraceName = 13,
                        kDescription = 14, kGpuTrack = 3000;
}
namespace process_field {
constexpr std::uint32_t kPid = 1, kSortIndex = 3, kName = 6;
}
namespace thread_field {
constexpr std::uint32_t kPid = 1, kTid = 2, kSortIndex = 3, kName = 5, kReferenceUs = 6;
}
namespace counter_field {
constexpr std::uint32_t kType = 1, kUnit = 3, kMultiplier = 4, kIncremental = 5, kUnitName = 6;
}
namespace snapshot_field {
constexpr std::uint32_t kClocks = 1, kPrimary = 2;
constexpr std::uint32_t kClockId = 1, kTimestamp = 2, kIncremental = 3, kMultiplier = 4;
}  // namespace snapshot_field

namespace clock_id {
constexpr std::uint32_t kRealtime = 1, kMonotonic = 3, kBoottime = 6, kFirstScoped = 64, kLastScoped = 127;
}

}  // namespace torchtrt_viz::perfetto
