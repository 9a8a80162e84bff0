// greeter_client [host:port]: gRPC's greeter, with the new line marked.

#include <iostream>
#include <memory>
#include <string>

#include "greeter.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "penstock/penstock.h"

int main(int argc, char** argv) {
  const std::string address = argc > 1 ? argv[1] : "127.0.0.1:50051";
  auto channel = grpc::CreateChannel(
      address,
      penstock::Credentials(grpc::InsecureChannelCredentials()));  // <- new
  auto stub = penstock::greeter::Greeter::NewStub(channel);
  penstock::greeter::HelloRequest request;
  penstock::greeter::HelloReply reply;
  request.set_name("world");
  grpc::ClientContext context;
  grpc::Status status = stub->SayHello(&context, request, &reply);
  if (!status.ok()) {
    std::cerr << "greeting " << address << ": " << status.error_message()
              << "\n";
    return 1;
  }
  std::cout << reply.message() << "\n";
  for (const auto& path : penstock::DescribePaths(*channel)) {
    std::cout << "over " << path << "\n";
  }
}
