// Options and counters of FakeVerbs' simulated network.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_OPTIONS_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_OPTIONS_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace penstock {
namespace fabric {
namespace verbs {

// One device with one port. The defaults are those of Soft-RoCE on Linux 6.1.
struct DeviceOptions {
  std::string name;
  // The addresses, IPv4 or IPv6, in inet_pton's format. Unique in the network.
  std::vector<std::string> addresses;
  int link_layer = IBV_LINK_LAYER_ETHERNET;
  // The GID types; each address has one GID of each type. For InfiniBand, set
  // IBV_GID_TYPE_IB.
  std::vector<uint32_t> gid_types = {IBV_GID_TYPE_ROCE_V2};
  int comp_vectors = 2;
  uint32_t max_inline = 512;
  int max_qp_rd_atom = 128;
  int max_qp_wr = 16384;
  int max_sge = 32;
  int max_srq_wr = 32768;
  int max_srq_sge = 27;
  int max_cqe = 32767;
  uint32_t max_message_bytes = 8u << 20;
  // Limits the size of one region. Larger regions fail with EINVAL.
  uint64_t max_mr_bytes = uint64_t{1} << 40;
  // Limits all regions together. Larger totals fail with ENOMEM.
  uint64_t memlock_bytes = uint64_t{1} << 40;
  // If false, AllocMw returns EOPNOTSUPP.
  bool has_windows = true;
  // If false, as in Soft-RoCE, a key gives access to the window's whole region.
  bool enforce_window_range = true;
  // If false, windows break one of these promises: a key is valid through one
  // queue pair only; a key is invalid after its invalidation; a region's own
  // key needs access rights; READs return the right bytes.
  bool enforce_window_queue_pair = true;
  bool enforce_invalidation = true;
  bool enforce_region_access = true;
  bool reads_bytes = true;
  // If true, a queue pair on a shared receive queue of another protection
  // domain is refused with EINVAL.
  bool srq_same_pd = true;
  // If true, IBV_EVENT_QP_LAST_WQE_REACHED follows the failure of a queue pair
  // on a shared receive queue. Soft-RoCE does not send the event.
  bool last_wqe_events = true;
  // If false, RegDmabufMr returns EOPNOTSUPP.
  bool has_dmabuf = true;
  // Returns the memory at a GPU's address, or null for another address.
  // Simulates the kernel's peer-memory module, if there is one.
  std::function<uint8_t*(const void* address, size_t size)> peer_memory =
      nullptr;
  // If false, registered GPU memory has a fault: windows cannot be bound; reads
  // from it return zeros; reads into it go elsewhere.
  bool binds_gpus = true;
  bool reads_gpus = true;
  bool writes_gpus = true;
};

// Options of the whole network.
struct NetworkOptions {
  // If true, connecting to an unused address gives RDMA_CM_EVENT_UNREACHABLE,
  // like a host that does not answer, instead of a reject with reason 8.
  bool silent_hosts = false;
  // If true, RDMA_CM_EVENT_TIMEWAIT_EXIT follows DISCONNECTED.
  bool timewait_events = false;
  // Limits the attempts for a message without a receive buffer. After the last
  // attempt, the message fails with IBV_WC_RNR_RETRY_EXC_ERR. An attempt is
  // made after each call that does work, and in each Step(). 0 means unlimited,
  // except for connections with rnr_retry_count 0.
  int rnr_attempts = 0;
  // If true, simulates a library that has ibv_reg_dmabuf_mr.
  bool has_reg_dmabuf_mr = true;
};

// The functions of Api that can fail.
enum class Call {
  kForkInit,
  kQueryDevice,
  kQueryPort,
  kQueryGidTable,
  kGetAsyncEvent,
  kAllocPd,
  kDeallocPd,
  kRegMr,
  kRegDmabufMr,
  kDeregMr,
  kAllocMw,
  kDeallocMw,
  kCreateCompChannel,
  kDestroyCompChannel,
  kCreateCq,
  kDestroyCq,
  kReqNotifyCq,
  kGetCqEvent,
  kPollCq,
  kCreateSrq,
  kDestroySrq,
  kPostSrqRecv,
  kPostSend,
  kIbvCreateQp,
  kIbvDestroyQp,
  kModifyQp,
  kQueryQp,
  kCreateEventChannel,
  kGetCmEvent,
  kAckCmEvent,
  kCreateId,
  kDestroyId,
  kBindAddr,
  kSetOption,
  kListen,
  kGetSrcPort,
  kResolveAddr,
  kResolveRoute,
  kCreateQp,
  kConnect,
  kAccept,
  kReject,
  kDisconnect,
};

// The numbers of living objects that the caller has made.
struct Counts {
  int pds = 0;
  int mrs = 0;
  int mws = 0;
  int comp_channels = 0;
  int cqs = 0;
  int srqs = 0;
  int qps = 0;
  int event_channels = 0;
  int ids = 0;
  int bound_mws = 0;  // of mws
  uint64_t registered_bytes = 0;

  int objects() const {
    return pds + mrs + mws + comp_channels + cqs + srqs + qps + event_channels +
           ids;
  }
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_OPTIONS_H_
