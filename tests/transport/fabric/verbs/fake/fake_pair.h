// Two connected queue pairs on two devices of a FakeVerbs.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_PAIR_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_PAIR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Returns an IPv4 address in the format of the calls.
sockaddr_storage AddressOf(const std::string& ip, uint16_t port);
inline sockaddr* Generic(sockaddr_storage* address) {
  return reinterpret_cast<sockaddr*>(address);
}

// The objects of one side. The test destroys all of them.
struct FakeSide {
  ibv_context* device = nullptr;
  rdma_event_channel* events = nullptr;
  rdma_cm_id* id = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_mr* mr = nullptr;
  std::vector<char> memory = std::vector<char>(4096);
};

// The devices "client" at 10.0.0.1 and "server" at 10.0.0.2. The destructor
// destroys everything in order.
class FakePair {
 public:
  static constexpr uint32_t kSends = 4;
  static constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE |
                                 IBV_ACCESS_REMOTE_READ |
                                 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;

  explicit FakePair(NetworkOptions network = {}, DeviceOptions device = {},
                    int cq_entries = 64);
  ~FakePair();

  // Connects both sides until ESTABLISHED, with `param` for both.
  void Connect(rdma_conn_param param = Params());
  // Acknowledges the next event and returns its type, or -1 if there is none.
  int NextEvent(FakeSide* side);
  void DropQp(FakeSide* side);

  static rdma_conn_param Params();
  // Returns `side`'s memory, or a part of it.
  static ibv_sge Part(const FakeSide& side, uint32_t offset = 0,
                      uint32_t length = 64);
  // Posts a signalled request with one part. Returns the error number.
  int Post(FakeSide* side, ibv_wr_opcode opcode, ibv_sge part,
           uint64_t remote = 0, uint32_t rkey = 0,
           unsigned flags = IBV_SEND_SIGNALED);
  int PostReceive(FakeSide* side, ibv_sge part, uint64_t wr_id = 7);
  // Binds `mw` to the side's memory with the next key. Returns the key.
  uint32_t BindWindow(FakeSide* side, ibv_mw* mw, uint32_t offset,
                      uint32_t length);
  // Returns all completions of the side.
  std::vector<ibv_wc> Poll(FakeSide* side);

  FakeVerbs verbs;
  FakeSide client;
  FakeSide server;

 private:
  void Make(FakeSide* side);
  void End(FakeSide* side);
  void CreateQp(FakeSide* side);

  const int cq_entries_;
  rdma_cm_id* listener_ = nullptr;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_PAIR_H_
