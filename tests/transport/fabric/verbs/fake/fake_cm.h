// The connection manager of a fake network, like librdmacm's.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_CM_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_CM_H_

#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "tests/transport/fabric/verbs/fake/fake_network.h"
#include "tests/transport/fabric/verbs/fake/fake_objects.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A simulated librdmacm. Functions that return an int return 0 or the error
// number. As in librdmacm, an event takes effect when its user takes it: for
// example, an id gets its device, or a queue pair becomes ready. Not
// thread-safe.
class FakeCm {
 public:
  explicit FakeCm(FakeNetwork* network) : network_(network) {}
  ~FakeCm();

  int CreateChannel(rdma_event_channel** made);
  void DestroyChannel(rdma_event_channel* channel);
  // Takes an event. Returns false if there is none.
  bool TakeEvent(rdma_event_channel* channel, rdma_cm_event** event);
  int Ack(rdma_cm_event* event);

  int CreateId(rdma_event_channel* channel, rdma_cm_id** made, void* context,
               rdma_port_space space);
  int DestroyId(rdma_cm_id* id);
  // Returns true if a thread other than `destroyer` has unacknowledged events
  // of `id`.
  bool AwaitsAck(const rdma_cm_id* id, std::thread::id destroyer) const;
  int Bind(rdma_cm_id* id, const sockaddr* address);
  int SetOption(rdma_cm_id* id, int level, int name, const void* value,
                size_t length);
  int Listen(rdma_cm_id* id, int backlog);
  int ResolveAddr(rdma_cm_id* id, const sockaddr* source,
                  const sockaddr* destination);
  int ResolveRoute(rdma_cm_id* id);
  int CreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr);
  void DestroyQp(rdma_cm_id* id);
  int Connect(rdma_cm_id* id, const rdma_conn_param* param);
  int Accept(rdma_cm_id* id, const rdma_conn_param* param);
  int Reject(rdma_cm_id* id, const void* data, uint8_t length);
  int Disconnect(rdma_cm_id* id);
  void RemoveDevice(FakeDevice* device);
  // Counts the ids that are known to their owner.
  int CountIds() const;

 private:
  using OnGet = std::function<void()>;

  FakeId* Find(uint64_t serial) const;
  FakeId* FindListener(const sockaddr* address) const;
  uint16_t FreePort() const;
  bool PortIsTaken(const FakeId& id, const sockaddr* address) const;

  // Queues an event. `private_data` was padded by its sender to the size of the
  // message on the wire.
  void Report(FakeId* id, rdma_cm_event_type type, int status,
              OnGet on_get = nullptr);
  void ReportConnection(FakeId* id, rdma_cm_event_type type, int status,
                        const rdma_conn_param& param,
                        const std::string& private_data,
                        OnGet on_get = nullptr);
  void Push(FakeId* owner, FakeCmEvent* event);
  void ForgetEvents(FakeId* owner, const rdma_cm_id* id);

  // Handle messages that arrive at the other side.
  void OnRequest(uint64_t from, const std::string& private_data);
  void OnReply(uint64_t to, const std::string& private_data);
  void OnReject(uint64_t to, int reason, const std::string& private_data);
  void OnReady(uint64_t to);
  void OnGoodbye(uint64_t to);

  void RefuseRequest(uint64_t to, FakeDevice* from, int reason);
  void SayGoodbye(FakeId* id);
  void Ready(FakeId* id);
  void EndRequestsOf(const FakeId& listener);
  void Attach(FakeId* id, FakeDevice* device);

  FakeNetwork* const network_;
  uint64_t last_serial_ = 0;
  std::map<uint64_t, FakeId*> ids_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_CM_H_
