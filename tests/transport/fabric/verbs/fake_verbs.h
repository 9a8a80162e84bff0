// A network of RDMA devices in this process's memory, for tests: no device, no
// root, no time. It is as strict as devices are, and where they differ, as the
// strictest of them.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_VERBS_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_VERBS_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/transport/fabric/verbs/fake_options.h"
#include "transport/fabric/verbs/api.h"

namespace penstock {
namespace fabric {
namespace verbs {

class FakeCm;
class FakeNetwork;

// Devices that can all reach one another. What is posted is done before the
// posting call returns, unless Hold() was called; so everything a test sees is
// the same each time. Contexts live as long as the network. Thread-safe.
class FakeVerbs : public Api {
 public:
  explicit FakeVerbs(NetworkOptions options = {});
  ~FakeVerbs() override;

  // Devices. A context is opened once per process, as by librdmacm.
  ibv_context* AddDevice(DeviceOptions options);
  ibv_context* context(absl::string_view device);

  // Order. While held, work requests, flushes and what the connection manager
  // sends wait.
  void Hold();
  // Does the oldest thing that can be done. False: there is none.
  bool Step();
  // Does it all, and what is posted from now on at once.
  void Release();

  // Faults. The call after `after` more of its kind fails with `error_number`
  // by its own convention, and does nothing.
  void FailNext(Call call, int error_number, int after = 0);
  // Of these, how many have not come to pass.
  size_t failures_to_come();
  // The next work request with `opcode` that its turn comes to ends with
  // `status` without being done, and its queue pair with it. IBV_WC_SUCCESS: it
  // is done, and those after it are not meant.
  void CompleteNext(ibv_wr_opcode opcode, ibv_wc_status status);
  // Between the two, nothing is done and nothing reported; what waits is done
  // once the link is restored.
  void CutLink(absl::string_view a, absl::string_view b);
  void RestoreLink(absl::string_view a, absl::string_view b);
  // The device is gone: events say so, queue pairs fail, nothing new is made.
  void RemoveDevice(absl::string_view device);
  // The caller is about to map other pages at these addresses: regions keep the
  // bytes that are there now, as devices do.
  void ReplacePages(const void* address, size_t length);
  // Of the port of the device: as CutLink() to everywhere, with its event.
  void PortDown(absl::string_view device);
  void PortUp(absl::string_view device);

  // Accounting.
  Counts counts();
  // What a caller did that the libraries forbid, hang at, or answer EBUSY to;
  // overflowing a completion queue counts as well.
  std::vector<std::string> misuse();
  // What is still alive, one entry per kind, and misuse() after it: empty at
  // the end of a good test.
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
  // The error number to fail `call` with, or 0.
  int Fault(Call call);  // under mu_, as the next
  // `result`, once whatever it set going has been done.
  int Ran(int result);

  // Not absl's, which ThreadSanitizer does not see through.
  std::mutex mu_;                         // guards all
  std::condition_variable acknowledged_;  // an event has been
  const std::unique_ptr<FakeNetwork> network_;
  const std::unique_ptr<FakeCm> cm_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_VERBS_H_
