// greeter_server [host:port]: gRPC's greeter, with the new line marked.

#include <iostream>
#include <memory>
#include <string>

#include "greeter.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "penstock/penstock.h"

class Service final : public penstock::greeter::Greeter::Service {
  grpc::Status SayHello(grpc::ServerContext* context,
                        const penstock::greeter::HelloRequest* request,
                        penstock::greeter::HelloReply* reply) override {
    reply->set_message("Hello " + request->name());
    return grpc::Status::OK;
  }
};

int main(int argc, char** argv) {
  const std::string address = argc > 1 ? argv[1] : "127.0.0.1:50051";
  Service service;
  int port = 0;
  grpc::ServerBuilder builder;
  penstock::Enable(&builder);  // <- new
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "cannot listen on " << address << "\n";
    return 1;
  }
  std::cout << "listening on port " << port << std::endl;
  server->Wait();
}
