// The table of all settings. To add a setting, add a row here, a field of the
// same name to Options and to Settings, and a row and a paragraph to
// docs/settings.md. Tests fail if one of them is missing.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_TABLE_H_
#define PENSTOCK_TRANSPORT_SETTINGS_TABLE_H_

#include <tuple>

#include "penstock/options.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/progress/spin_policy.h"
#include "transport/settings/form.h"
#include "transport/settings/row.h"
#include "transport/settings/settings.h"

namespace penstock {

inline constexpr Word<Policy> kPolicyWords[] = {
    {"require", Policy::kRequire},
    {"prefer", Policy::kPrefer},
    {"off", Policy::kOff},
};
inline constexpr Word<Fabric> kFabricWords[] = {
    {"shm", Fabric::kShm},
    {"verbs", Fabric::kVerbs},
    {"tcp", Fabric::kTcp},
};
inline constexpr Word<ShmSharing> kShmSharingWords[] = {
    {"same-uid", ShmSharing::kSameUid},
    {"copy", ShmSharing::kCopy},
    {"off", ShmSharing::kOff},
};
inline constexpr Word<DataProtection> kDataProtectionWords[] = {
    {"required", DataProtection::kRequired},
    {"none", DataProtection::kNone},
};
inline constexpr Word<progress::PollingMode> kPollingWords[] = {
    {"adaptive", progress::PollingMode::kAdaptive},
    {"busy", progress::PollingMode::kBusy},
    {"event", progress::PollingMode::kEvent},
};
inline constexpr Word<fabric::shm::HugePages> kHugePagesWords[] = {
    {"transparent", fabric::shm::HugePages::kTransparent},
    {"reserved", fabric::shm::HugePages::kReserved},
    {"off", fabric::shm::HugePages::kOff},
};

inline constexpr Word<StatusSocket> kStatusSocketWords[] = {
    {"on", StatusSocket::kOn},
    {"off", StatusSocket::kOff},
};

inline constexpr Word<StubMemory> kStubMemoryWords[] = {
    {"heap", StubMemory::kHeap},
    {"pool", StubMemory::kPool},
};

// Limits the length of the directory's path. Path and file name must fit into a
// socket address.
inline constexpr Directory kSocketDirectory = {65};
inline constexpr Number kGidIndexes = {0, 255, -1, "any"};
inline constexpr Number kTrafficClasses = {0, 255, -1, "the system's"};
// The bounds of the eager limit, in bytes. The upper bound is the payload of
// eight full frames.
inline constexpr Number kEagerSizes = {1, 130816, 0, "the measured size"};
// The bounds of chunk sizes, in bytes. Below the lower bound, starting a read
// costs as much as copying its bytes. No fabric reads more than the upper bound
// in one read.
inline constexpr Number kChunkSizes = {4 * 1024, 1024 * 1024, 0,
                                       "the measured size"};
// The bounds of the registration cache, in MiB. The upper bound is 1 TiB.
inline constexpr Number kCacheMib = {0, 1 << 20};
// The bounds of the arena, in MiB. The lower bound is the arena's first
// segment.
inline constexpr Number kArenaMib = {
    16, 1 << 20, 0, "1024, or a quarter of the memory if that is less"};

// The bounds of the heartbeat's interval, in milliseconds. The lower bound is
// the resolution of a timer. The upper bound is longer than any middlebox
// allows.
inline constexpr Number kHeartbeats = {10, 3600 * 1000, 0, "none"};

// The bounds of the number of sockets of a session. More sockets would only
// divide the same link.
inline constexpr Number kTcpSocketCounts = {1, 16};

// Expands to a field's name, its member of Options, and its member of Settings.
#define PENSTOCK_FIELD(name) #name, &Options::name, &Settings::name

inline constexpr Row kPolicy(
    "PENSTOCK_POLICY", PENSTOCK_FIELD(policy), Words(kPolicyWords),
    {"Policy", "what to do if no wanted fabric is usable, see below"});

inline constexpr Row kFabrics("PENSTOCK_FABRICS", PENSTOCK_FIELD(fabrics),
                              ListOfWords(Words(kFabricWords)),
                              {"Fabrics", "which fabrics may carry a session"});

// The settings of a channel or a server.
inline constexpr std::tuple kRows(
    kPolicy, kFabrics,
    Row("PENSTOCK_SHM_SHARING", PENSTOCK_FIELD(shm_sharing),
        Words(kShmSharingWords),
        {"Shm sharing", "how large messages go through shared memory"}),
    Row("PENSTOCK_SHM_DIRECTORY", PENSTOCK_FIELD(shm_directory),
        kSocketDirectory,
        {"Shm directory",
         "the directory of the sockets that set up shared memory",
         "none: abstract sockets"}),
    Row("PENSTOCK_VERBS_DEVICE", PENSTOCK_FIELD(verbs_device), DeviceText(),
        {"Verbs device", "the RDMA device", "any"}),
    Row("PENSTOCK_VERBS_GID_INDEX", PENSTOCK_FIELD(verbs_gid_index),
        kGidIndexes,
        {"Verbs device", "the GID of the port, which selects the address"}),
    Row("PENSTOCK_VERBS_TRAFFIC_CLASS", PENSTOCK_FIELD(verbs_traffic_class),
        kTrafficClasses,
        {"Verbs device",
         "the class (DSCP and ECN bits) of RoCE v2 packets; on InfiniBand it "
         "selects the service level"}),
    Row("PENSTOCK_EAGER_MAX", PENSTOCK_FIELD(eager_max_bytes), kEagerSizes,
        {"Sizes",
         "the size limit of messages that are sent eagerly; larger ones are "
         "announced and read"}),
    Row("PENSTOCK_CHUNK", PENSTOCK_FIELD(chunk_bytes), kChunkSizes,
        {"Sizes",
         "the size of the pieces in which announced messages are read"}),
    Row("PENSTOCK_VERBS_CACHE_MIB", PENSTOCK_FIELD(verbs_cache_mib), kCacheMib,
        {"Verbs cache",
         "the limit, in MiB, of RegisterMemory()'s memory that stays "
         "registered with an RDMA device",
         "or a quarter of the limit of locked memory if that is less"}),
    Row("PENSTOCK_DATA_PROTECTION", PENSTOCK_FIELD(data_protection),
        Words(kDataProtectionWords),
        {"Data protection",
         "whether RDMA may carry, in the clear, messages that TLS would "
         "protect"}),
    Row("PENSTOCK_HEARTBEAT_MS", PENSTOCK_FIELD(heartbeat_ms), kHeartbeats,
        {"Heartbeat",
         "the limit, in milliseconds, of silence on the TCP connection while "
         "another path is in use"}));

#undef PENSTOCK_FIELD

inline constexpr ProcessRow kPolling(
    "PENSTOCK_POLLING", progress::PollingMode::kAdaptive, Words(kPollingWords),
    {"Polling",
     "how threads that wait look for input on shm, RDMA and sockets"});

inline constexpr ProcessRow kShmHugePages(
    "PENSTOCK_SHM_HUGE_PAGES", fabric::shm::HugePages::kTransparent,
    Words(kHugePagesWords),
    {"Shm huge pages", "the pages that hold large messages over shm"});

inline constexpr ProcessRow kShmArenaMib(
    "PENSTOCK_SHM_ARENA_MIB", 0, kArenaMib,
    {"Shm arena",
     "the limit, in MiB, of the shared memory for large messages that the "
     "process sends"});

inline constexpr ProcessRow kTcpSockets(
    "PENSTOCK_TCP_SOCKETS", 1, kTcpSocketCounts,
    {"Tcp sockets",
     "the number of further sockets of a session; the first one carries its "
     "short messages, and all share the large ones; 1 means none"});

inline constexpr ProcessRow kStubMemory(
    "PENSTOCK_STUB_MEMORY", StubMemory::kPool, Words(kStubMemoryWords),
    {"Stub memory",
     "the memory into which stubs serialise messages of 16 KiB or more"});

inline constexpr ProcessRow kMetrics(
    "PENSTOCK_METRICS", "", HttpAddressText(),
    {"Metrics",
     "the address at which metrics are served over HTTP, for Prometheus",
     "none: not served"});

inline constexpr ProcessRow kStatusSocket(
    "PENSTOCK_STATUS_SOCKET", StatusSocket::kOn, Words(kStatusSocketWords),
    {"Status socket",
     "whether the process answers status requests of its own user and root"});

inline constexpr ProcessRow kTrace(
    "PENSTOCK_TRACE", "", File(),
    {"Trace", "the file for a trace of RPCs and large messages",
     "none: not written"});

inline constexpr ProcessRow kRecord(
    "PENSTOCK_RECORD", "", File(),
    {"Record", "the file for a recording of the traffic of gRPC servers",
     "none: not recorded"});

// The settings of the process.
inline constexpr std::tuple kProcessRows(
    kPolling, kShmHugePages, kShmArenaMib, kTcpSockets, kStubMemory, kMetrics,
    kStatusSocket, kTrace, kRecord,
    LogRow({"Log", "the lowest level of lines that go to standard error"}));

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_TABLE_H_
