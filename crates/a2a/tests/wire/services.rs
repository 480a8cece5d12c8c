//! The health and reflection services, called with their public clients.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt, stream};
use prost::Message;
use prost_types::FileDescriptorProto;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServiceResponse};
use tonic_reflection::pb::v1alpha;

use super::double::Double;

const SERVICES: [&str; 2] = ["lf.a2a.v1.A2AService", "a2a.v1.A2AService"];

async fn channel() -> Channel {
    let double = Double::start().await;
    Endpoint::from_shared(double.url()).unwrap().connect().await.unwrap()
}

fn health_request(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

fn reflection_request(request: MessageRequest) -> ServerReflectionRequest {
    ServerReflectionRequest { host: String::new(), message_request: Some(request) }
}

async fn reflect(channel: &Channel, requests: Vec<MessageRequest>) -> Vec<MessageResponse> {
    let requests = requests.into_iter().map(reflection_request);
    let mut client = ServerReflectionClient::new(channel.clone());
    let responses =
        client.server_reflection_info(stream::iter(requests.collect::<Vec<_>>())).await.unwrap().into_inner();
    responses.map(|response| response.unwrap().message_response.unwrap()).collect().await
}

#[tokio::test]
async fn the_server_and_both_services_are_healthy() {
    // A2A-1
    let mut client = HealthClient::new(channel().await);
    for service in ["", SERVICES[0], SERVICES[1]] {
        let status = client.check(health_request(service)).await.unwrap().into_inner();
        assert_eq!(status.status(), ServingStatus::Serving, "{service}");
        let mut watched = client.watch(health_request(service)).await.unwrap().into_inner();
        assert_eq!(watched.message().await.unwrap().unwrap().status(), ServingStatus::Serving, "{service}");
    }
    let status = client.check(health_request("assistant")).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let status = client.check(health_request(&"x".repeat(100_000))).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
}

#[tokio::test]
async fn reflection_lists_the_services_and_nothing_else() {
    // A2A-1
    let channel = channel().await;
    let responses = reflect(&channel, vec![MessageRequest::ListServices(String::new())]).await;
    let [MessageResponse::ListServicesResponse(list)] = responses.as_slice() else { panic!("{responses:?}") };
    let names: BTreeSet<&str> = list.service.iter().map(|ServiceResponse { name }| name.as_str()).collect();
    let open = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];
    assert_eq!(names, SERVICES.into_iter().chain(open).collect());
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1alpha::server_reflection_request::MessageRequest::ListServices(String::new())),
    };
    let response = client.server_reflection_info(stream::iter([request])).await.unwrap();
    let response = response.into_inner().message().await.unwrap().unwrap();
    let Some(v1alpha::server_reflection_response::MessageResponse::ListServicesResponse(list)) =
        response.message_response
    else {
        panic!("no list")
    };
    assert!(SERVICES.iter().all(|name| list.service.iter().any(|service| service.name == *name)), "{list:?}");
}

/// A tool that knows only the address gets all definitions that it needs to call a method.
#[tokio::test]
async fn reflection_describes_every_method_and_message() {
    // A2A-1
    let channel = channel().await;
    let symbol = |name: &str| MessageRequest::FileContainingSymbol(name.to_owned());
    let mut files = BTreeMap::new();
    let mut wanted: Vec<MessageRequest> = SERVICES.into_iter().map(symbol).collect();
    while !wanted.is_empty() {
        for response in reflect(&channel, std::mem::take(&mut wanted)).await {
            let MessageResponse::FileDescriptorResponse(found) = response else { panic!("{response:?}") };
            for file in found.file_descriptor_proto {
                let file = FileDescriptorProto::decode(file.as_slice()).unwrap();
                let missing = file.dependency.iter().filter(|name| !files.contains_key(*name));
                wanted.extend(missing.cloned().map(MessageRequest::FileByFilename));
                files.insert(file.name().to_owned(), file);
            }
        }
    }
    let methods: BTreeMap<&str, usize> = files
        .values()
        .filter(|file| !file.service.is_empty())
        .map(|file| (file.package(), file.service[0].method.len()))
        .collect();
    assert_eq!(methods, BTreeMap::from([("lf.a2a.v1", 11), ("a2a.v1", 10)]));
    let messages: BTreeSet<String> = files
        .values()
        .flat_map(|file| file.message_type.iter().map(|message| format!(".{}.{}", file.package(), message.name())))
        .collect();
    for method in files.values().flat_map(|file| &file.service).flat_map(|service| &service.method) {
        for name in [method.input_type(), method.output_type()] {
            assert!(messages.contains(name), "{name} of {} is not described", method.name());
        }
    }
    let unknown = reflection_request(symbol("no.such.Service"));
    let mut client = ServerReflectionClient::new(channel);
    let mut responses = client.server_reflection_info(stream::iter([unknown])).await.unwrap().into_inner();
    assert_eq!(responses.message().await.unwrap_err().code(), Code::NotFound);
}
