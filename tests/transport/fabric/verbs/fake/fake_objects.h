// The objects that FakeVerbs makes. Each consists of the public structure and
// the device's own state.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_OBJECTS_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_OBJECTS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/transport/fabric/verbs/fake/fake_event_fd.h"
#include "tests/transport/fabric/verbs/fake/fake_options.h"

namespace penstock {
namespace fabric {
namespace verbs {

struct FakeDevice : ibv_context {
  ibv_device entry = {};
  DeviceOptions options;
  int index = 0;
  std::vector<sockaddr_storage> addresses;
  bool removed = false;
  bool port_up = true;
  uint64_t registered_bytes = 0;
  FakeEventFd async_signal;
  std::deque<ibv_async_event> async_events;
};

struct FakePd : ibv_pd {
  int users = 0;
};

// The mapped pages of a file, unmapped on destruction.
struct FakeMapping {
  FakeMapping() = default;
  FakeMapping(const FakeMapping&) = delete;
  FakeMapping& operator=(const FakeMapping&) = delete;
  ~FakeMapping() {
    if (data != nullptr) munmap(data, size);
  }

  void* data = nullptr;
  size_t size = 0;
};

struct FakeMr : ibv_mr {
  int access = 0;
  int windows = 0;
  // A copy of the old bytes of the pinned pages, made when other pages are
  // mapped at their addresses.
  std::vector<uint8_t> old_pages;
  // The CPU's address of the memory, if it belongs to a GPU.
  uint8_t* gpu = nullptr;
  FakeMapping mapping;             // the mapping of a dmabuf
  std::vector<uint8_t> elsewhere;  // the target of misdirected accesses
};

struct FakeMw : ibv_mw {
  // The window's key in the device; ibv_mw::rkey belongs to the caller.
  uint32_t key = 0;
  FakeMr* region = nullptr;  // Null if not bound.
  uint32_t qp_num = 0;
  uint64_t address = 0;
  uint64_t length = 0;
  unsigned access = 0;
};

struct FakeCompChannel : ibv_comp_channel {
  FakeEventFd signal;
  std::deque<struct FakeCq*> events;
  int users = 0;
};

struct FakeCompletion {
  ibv_wc wc;
  // True for a send. When the completion of a send is polled, the queue's slots
  // up to `slot` become free.
  bool is_send = false;
  uint64_t slot = 0;
};

struct FakeCq : ibv_cq {
  std::deque<FakeCompletion> completions;
  bool armed = false;
  bool solicited_only = false;
  bool overflowed = false;
  uint64_t unacked = 0;
  int users = 0;
};

struct FakeReceive {
  uint64_t wr_id = 0;
  std::vector<ibv_sge> parts;
};

struct FakeSrq : ibv_srq {
  uint32_t max_wr = 0;
  uint32_t max_sge = 0;
  std::deque<FakeReceive> receives;
  int users = 0;
};

struct FakeSend {
  uint64_t sequence = 0;
  uint64_t slot = 0;
  ibv_send_wr wr = {};
  std::vector<ibv_sge> parts;
  std::string inlined;
  // For IBV_WR_BIND_MW: the window's key at the time of posting.
  uint32_t window_key = 0;
  int rnr_attempts = 0;
};

struct FakeQp : ibv_qp {
  // True if libibverbs made the queue pair, whose owner then makes all state
  // changes.
  bool is_raw = false;
  uint32_t send_psn = 0;
  uint32_t receive_psn = 0;
  // The access rights of peers. The connection manager grants all rights.
  unsigned access = ~0u;
  ibv_qp_init_attr init = {};
  uint64_t posted = 0;
  uint64_t freed = 0;
  std::deque<FakeSend> sends;
  uint32_t dest_qp_num = 0;
  const FakeDevice* dest_device = nullptr;
  int max_rd_atomic = 0;
  int max_dest_rd_atomic = 0;
  int rnr_retry = 7;
  int unacked_async = 0;
  std::thread::id async_taker;  // Of the last event that was taken.
};

enum class FakeIdState {
  kIdle,
  kBound,
  kListening,
  kAddrQuery,
  kAddrResolved,
  kRouteQuery,
  kRouteResolved,
  kConnecting,
  kRequested,
  kAccepted,
  kConnected,
  kClosed,
};

struct FakeId : rdma_cm_id {
  uint64_t serial = 0;
  FakeIdState state = FakeIdState::kIdle;
  FakeDevice* device = nullptr;
  bool reuse_addr = false;
  bool handed_out = true;  // False for a request that nobody has taken yet.
  int backlog = 0;
  int unacked = 0;
  std::thread::id taker;  // Of the last event that was taken.
  uint64_t listener = 0;
  uint64_t peer = 0;
  rdma_conn_param param = {};
  rdma_conn_param peer_param = {};
  uint32_t peer_qp_num = 0;
  bool said_goodbye = false;
  bool heard_goodbye = false;
};

struct FakeCmEvent : rdma_cm_event {
  // The owner of the event. The owner's destruction blocks until the event is
  // acknowledged.
  FakeId* owner = nullptr;
  std::string private_data;
  // Runs when the event is taken. Does what librdmacm does at that time.
  std::function<void()> on_get;
};

struct FakeEventChannel : rdma_event_channel {
  FakeEventFd signal;
  std::deque<FakeCmEvent*> events;
  int ids = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_OBJECTS_H_
