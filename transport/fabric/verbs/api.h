// The calls of libibverbs and librdmacm that this folder makes. All calls go
// through this class, so that a test can replace the device and make each call
// fail.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_API_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_API_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>

namespace penstock {
namespace fabric {
namespace verbs {

// The functions of the libraries. Each function is the library's function of
// the same name with the prefix ibv_ or rdma_. IbvCreateQp() and CreateQp()
// distinguish two functions of one name. The results are the library's:
//
//   creating something      the object, or null and errno
//   ending and posting      0, or the error number
//   polling                 a count, or negative
//   rdma_*                  0, or -1 and errno
//
// handles.h converts created objects to owners, and errors to statuses. As
// thread-safe as the libraries.
class Api {
 public:
  virtual ~Api() = default;

  // The functions of libibverbs.
  virtual int ForkInit() = 0;
  virtual const char* GetDeviceName(ibv_device* device) = 0;
  virtual int QueryDevice(ibv_context* context, ibv_device_attr* attr) = 0;
  virtual int QueryPort(ibv_context* context, uint8_t port,
                        ibv_port_attr* attr) = 0;
  // Returns the count of GIDs, or a negative error number.
  virtual ssize_t QueryGidTable(ibv_context* context, ibv_gid_entry* entries,
                                size_t max_entries) = 0;
  virtual int GetAsyncEvent(ibv_context* context, ibv_async_event* event) = 0;
  virtual void AckAsyncEvent(ibv_async_event* event) = 0;
  virtual ibv_pd* AllocPd(ibv_context* context) = 0;
  virtual int DeallocPd(ibv_pd* pd) = 0;
  virtual ibv_mr* RegMr(ibv_pd* pd, void* address, size_t length,
                        int access) = 0;
  virtual int DeregMr(ibv_mr* mr) = 0;
  // Returns true if the library has RegDmabufMr(), as rdma-core does from 34
  // on. If false, RegDmabufMr() fails with EOPNOTSUPP.
  virtual bool HasRegDmabufMr() = 0;
  // Registers [offset, offset + length) of a dmabuf. The registration's first
  // byte gets the address `iova`, as ibv_mr::addr does. The caller may close
  // `fd` afterwards.
  virtual ibv_mr* RegDmabufMr(ibv_pd* pd, uint64_t offset, size_t length,
                              uint64_t iova, int fd, int access) = 0;
  virtual ibv_mw* AllocMw(ibv_pd* pd, ibv_mw_type type) = 0;
  virtual int DeallocMw(ibv_mw* mw) = 0;
  virtual ibv_comp_channel* CreateCompChannel(ibv_context* context) = 0;
  virtual int DestroyCompChannel(ibv_comp_channel* channel) = 0;
  virtual ibv_cq* CreateCq(ibv_context* context, int entries, void* cq_context,
                           ibv_comp_channel* channel, int vector) = 0;
  virtual int DestroyCq(ibv_cq* cq) = 0;
  virtual int ReqNotifyCq(ibv_cq* cq, int solicited_only) = 0;
  virtual int GetCqEvent(ibv_comp_channel* channel, ibv_cq** cq,
                         void** cq_context) = 0;
  virtual void AckCqEvents(ibv_cq* cq, unsigned int count) = 0;
  virtual int PollCq(ibv_cq* cq, int entries, ibv_wc* completions) = 0;
  virtual ibv_srq* CreateSrq(ibv_pd* pd, ibv_srq_init_attr* attr) = 0;
  virtual int DestroySrq(ibv_srq* srq) = 0;
  virtual int PostSrqRecv(ibv_srq* srq, ibv_recv_wr* request,
                          ibv_recv_wr** bad) = 0;
  virtual int PostSend(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) = 0;
  virtual ibv_qp* IbvCreateQp(ibv_pd* pd, ibv_qp_init_attr* attr) = 0;
  virtual int IbvDestroyQp(ibv_qp* qp) = 0;
  virtual int ModifyQp(ibv_qp* qp, ibv_qp_attr* attr, int mask) = 0;
  virtual int QueryQp(ibv_qp* qp, ibv_qp_attr* attr, int mask,
                      ibv_qp_init_attr* init) = 0;

  // The functions of librdmacm.
  virtual rdma_event_channel* CreateEventChannel() = 0;
  virtual void DestroyEventChannel(rdma_event_channel* channel) = 0;
  virtual int GetCmEvent(rdma_event_channel* channel,
                         rdma_cm_event** event) = 0;
  virtual int AckCmEvent(rdma_cm_event* event) = 0;
  virtual int CreateId(rdma_event_channel* channel, rdma_cm_id** id,
                       void* context, rdma_port_space space) = 0;
  virtual int DestroyId(rdma_cm_id* id) = 0;
  virtual int BindAddr(rdma_cm_id* id, sockaddr* address) = 0;
  virtual int SetOption(rdma_cm_id* id, int level, int name, void* value,
                        size_t length) = 0;
  virtual int Listen(rdma_cm_id* id, int backlog) = 0;
  // Returns the port in network byte order.
  virtual uint16_t GetSrcPort(rdma_cm_id* id) = 0;
  virtual int ResolveAddr(rdma_cm_id* id, sockaddr* source,
                          sockaddr* destination, int timeout_ms) = 0;
  virtual int ResolveRoute(rdma_cm_id* id, int timeout_ms) = 0;
  virtual int CreateQp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* attr) = 0;
  virtual void DestroyQp(rdma_cm_id* id) = 0;
  virtual int Connect(rdma_cm_id* id, rdma_conn_param* param) = 0;
  virtual int Accept(rdma_cm_id* id, rdma_conn_param* param) = 0;
  virtual int Reject(rdma_cm_id* id, const void* data, uint8_t length) = 0;
  virtual int Disconnect(rdma_cm_id* id) = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_API_H_
