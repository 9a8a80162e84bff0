// A hostile peer that makes raw calls on a simulated device.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_RAW_PEER_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_RAW_PEER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Makes signalled requests. The destructor destroys everything in order.
class RawPeer {
 public:
  static constexpr uint32_t kReceives = 32;
  static constexpr uint32_t kBufferBytes = 32 * 1024;

  // Opens a peer on `device`, which has the address 10.0.0.1.
  RawPeer(FakeVerbs* api, ibv_context* device);
  ~RawPeer();

  // Resolves an offer's first address, and makes a queue pair.
  void Prepare(const std::string& offer);
  uint32_t qp_number() const { return id_->qp->qp_num; }
  // Requests a connection. Returns the answer, an event's type, or -1 if there
  // is none yet.
  int Call(const std::string& private_data);
  // Makes a complete, valid request that proves `token`.
  int CallProperly(const std::string& token);
  // Returns the next event's type, after the other side has done its part.
  // Returns -1 if there is no event.
  int NextEvent();
  // Return values of the last event that had any.
  const std::string& private_data() const { return private_data_; }
  uint32_t peer_qp_number() const { return peer_qp_number_; }

  // Return the status of the request, or -1 if the request has not ended.
  int Send(const std::string& bytes);
  int SendWithInvalidate(const std::string& bytes, uint32_t rkey);
  int Read(uint64_t address, uint32_t length, uint32_t rkey);
  int Write(uint64_t address, uint32_t length, uint32_t rkey);

 private:
  int Post(ibv_send_wr request, uint32_t length);

  FakeVerbs* const api_;
  rdma_event_channel* const events_;
  ibv_pd* const pd_;
  ibv_cq* const cq_;
  ibv_srq* srq_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  std::vector<char> memory_ =
      std::vector<char>(kReceives * kBufferBytes + 2 * kBufferBytes);
  ibv_mr* const region_;
  std::string private_data_;
  uint32_t peer_qp_number_ = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_RAW_PEER_H_
