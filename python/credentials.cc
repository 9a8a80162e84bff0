#include "python/credentials.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>

#include "python/bindings.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Converts None to the empty string, gRPC's notation for no text.
std::string Pem(const py::object& pem) {
  return pem.is_none() ? std::string() : std::string(pem.cast<py::bytes>());
}

ChannelCredentials SslChannel(const py::object& roots, const py::object& key,
                              const py::object& chain) {
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = Pem(roots);
  options.pem_private_key = Pem(key);
  options.pem_cert_chain = Pem(chain);
  return {grpc::SslCredentials(options)};
}

ServerCredentials SslServer(const py::bytes& key, const py::bytes& chain,
                            const py::object& roots) {
  grpc::SslServerCredentialsOptions options(
      roots.is_none()
          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = Pem(roots);
  options.pem_key_cert_pairs.push_back({key, chain});
  return {grpc::SslServerCredentials(options)};
}

}  // namespace

void BindCredentials(py::module_& module) {
  const py::class_<ChannelCredentials> channel(
      module, "ChannelCredentials", "The security of a client's connections.");
  const py::class_<ServerCredentials> server(
      module, "ServerCredentials", "The security of a server's port.");
  module.def("ssl_channel_credentials", &SslChannel,
             py::arg("root_certificates") = py::none(),
             py::arg("private_key") = py::none(),
             py::arg("certificate_chain") = py::none(),
             "Makes credentials for a client with TLS. All arguments are PEM "
             "texts, as bytes. Without root certificates, the client trusts "
             "gRPC's default ones. The client sends its key and chain to "
             "servers that require a client certificate.");
  module.def("ssl_server_credentials", &SslServer, py::arg("private_key"),
             py::arg("certificate_chain"),
             py::arg("client_root_certificates") = py::none(),
             "Makes credentials for a server with TLS. All arguments are PEM "
             "texts, as bytes. With client_root_certificates, clients need a "
             "certificate that one of these has signed.");
}

}  // namespace penstock::python
