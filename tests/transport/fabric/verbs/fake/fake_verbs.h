// A network of RDMA devices, simulated in this process's memory, for tests
// without a device, root or real time. As strict as the strictest real device.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_VERBS_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_VERBS_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/transport/fabric/verbs/fake/fake_options.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

class FakeCm;
class FakeNetwork;

// Devices that can all reach one another. Posted work is done before the
// posting call returns, unless Hold() was called, so tests are deterministic.
// Contexts live as long as the network. Thread-safe.
class FakeVerbs : public Api {
 public:
  explicit FakeVerbs(NetworkOptions options = {});
  ~FakeVerbs() override;

  // Adds a device and opens it. A context is opened once per process, as in
  // librdmacm.
  ibv_context* AddDevice(DeviceOptions options);
  ibv_context* context(absl::string_view device);

  // Holds work requests, flushes and messages of the connection manager, until
  // Step() or Release().
  void Hold();
  // Does the oldest possible work. Returns false if there is none.
  bool Step();
  // Does all work, and does later posts immediately.
  void Release();

  // Makes one call of this kind fail, after `after` further calls, with
  // `error_number`. The call fails by its own convention and has no effect.
  void FailNext(Call call, int error_number, int after = 0);
  // Returns the number of requested failures that have not happened yet.
  size_t failures_to_come();
  // Ends the next work request with `opcode` with `status`, in its turn and
  // without effect. Breaks its queue pair. With IBV_WC_SUCCESS, executes the
  // request normally, and does not affect later requests.
  void CompleteNext(ibv_wr_opcode opcode, ibv_wc_status status);
  // Blocks all work and events between the two devices, until the link is
  // restored.
  void CutLink(absl::string_view a, absl::string_view b);
  void RestoreLink(absl::string_view a, absl::string_view b);
  // Removes the device. Sends the events of a removal, breaks the queue pairs,
  // and refuses new objects.
  void RemoveDevice(absl::string_view device);
  // Announces that the caller will map other pages at these addresses. Like on
  // real devices, regions keep the current bytes.
  void ReplacePages(const void* address, size_t length);
  // Returns the bytes that the device sees at `address` of a region.
  const void* Find(const ibv_mr& region, const void* address);
  // Takes the device's port down or up: like CutLink() to all devices, with the
  // event.
  void PortDown(absl::string_view device);
  void PortUp(absl::string_view device);

  // Returns the numbers of living objects.
  Counts counts();
  // Returns the caller's violations: actions that the libraries forbid, hang
  // at, or answer with EBUSY. Includes overflows of completion queues.
  std::vector<std::string> misuse();
  // Returns the living objects, one entry per kind, and then misuse(). Empty at
  // the end of a correct test.
  std::vector<std::string> leaks();

  int ForkInit() override;
  const char* GetDeviceName(ibv_device* device) override;
  int QueryDevice(ibv_context* context, ibv_device_attr* attr) override;
  int QueryPort(ibv_context* context, uint8_t port,
                ibv_port_attr* attr) override;
  ssize_t QueryGidTable(ibv_context* context, ibv_gid_entry* entries,
                        size_t max_entries) override;
  int GetAsyncEvent(ibv_context* context, ibv_async_event* event) override;
  void AckAsyncEvent(ibv_async_event* event) override;
  ibv_pd* AllocPd(ibv_context* context) override;
  int DeallocPd(ibv_pd* pd) override;
  ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length, int access) override;
  int DeregMr(ibv_mr* mr) override;
  bool HasRegDmabufMr() override;
  ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                      int fd, int access) override;
  ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type type) override;
  int DeallocMw(ibv_mw* mw) override;
  ibv_comp_channel* CreateCompChannel(ibv_context* context) override;
  int DestroyCompChannel(ibv_comp_channel* channel) override;
  ibv_cq* CreateCq(ibv_context* context, int entries, void* cq_context,
                   ibv_comp_channel* channel, int vector) override;
  int DestroyCq(ibv_cq* cq) override;
  int ReqNotifyCq(ibv_cq* cq, int solicited_only) override;
  int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                 void** cq_context) override;
  void AckCqEvents(ibv_cq* cq, unsigned int count) override;
  int PollCq(ibv_cq* cq, int entries, ibv_wc* completions) override;
  ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attr) override;
  int DestroySrq(ibv_srq* srq) override;
  int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* request,
                  ibv_recv_wr** bad) override;
  int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) override;
  ibv_qp* IbvCreateQp(ibv_pd* pd, ibv_qp_init_attr* attr) override;
  int IbvDestroyQp(ibv_qp* qp) override;
  int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
              ibv_qp_init_attr* init) override;

  rdma_event_channel* CreateEventChannel() override;
  void DestroyEventChannel(rdma_event_channel* channel) override;
  int GetCmEvent(rdma_event_channel* channel, rdma_cm_event** event) override;
  int AckCmEvent(rdma_cm_event* event) override;
  int CreateId(rdma_event_channel* channel, rdma_cm_id** id, void* context,
               rdma_port_space space) override;
  int DestroyId(rdma_cm_id* id) override;
  int BindAddr(rdma_cm_id* id, sockaddr* address) override;
  int SetOption(rdma_cm_id* id, int level, int name, void* value,
                size_t length) override;
  int Listen(rdma_cm_id* id, int backlog) override;
  uint16_t GetSrcPort(rdma_cm_id* id) override;
  int ResolveAddr(rdma_cm_id* id, sockaddr* source, sockaddr* destination,
                  int timeout_ms) override;
  int ResolveRoute(rdma_cm_id* id, int timeout_ms) override;
  int CreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) override;
  void DestroyQp(rdma_cm_id* id) override;
  int Connect(rdma_cm_id* id, rdma_conn_param* param) override;
  int Accept(rdma_cm_id* id, rdma_conn_param* param) override;
  int Reject(rdma_cm_id* id, const void* data, uint8_t length) override;
  int Disconnect(rdma_cm_id* id) override;

 private:
  // Returns the error number with which `call` must fail, or 0.
  int Fault(Call call);  // under mu_, like Ran()
  // Completes all work that the call has started, and returns `result`.
  int Ran(int result);

  // Guards all members. Not absl::Mutex, whose locks ThreadSanitizer does not
  // see.
  std::mutex mu_;
  std::condition_variable acknowledged_;  // an event was acknowledged
  const std::unique_ptr<FakeNetwork> network_;
  const std::unique_ptr<FakeCm> cm_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_VERBS_H_
