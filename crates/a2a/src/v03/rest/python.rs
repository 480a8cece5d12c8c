//! Compatibility with the official Python SDK of 0.3, which encodes the bytes of files differently in HTTP+JSON and
//! gRPC.
//!
//! The SDK sends base64 text where the protobuf message has bytes, and fails on plain bytes. Other implementations
//! follow the definition. The `User-Agent` header identifies the SDK.

use http::HeaderMap;
use http::header::USER_AGENT;

use crate::types::{Artifact, Message, Part, PartContent, SendMessageResponse, StreamResponse, Task};
use crate::{OperationRequest, OperationResponse, base64_bytes};

/// Returns whether the `User-Agent` is that of the Python HTTP client or of gRPC for Python, which the SDK uses.
pub fn is_python_sdk(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    agent.starts_with("python-httpx") || agent.starts_with("grpc-python")
}

/// Decodes the bytes in a request of the SDK. Only messages contain bytes.
pub fn decode_request(request: &mut OperationRequest) {
    if let OperationRequest::Send(request) | OperationRequest::Stream(request) = request {
        parts(&mut request.message.parts, &mut decode);
    }
}

/// Decodes the bytes in a response of an agent that may use the SDK.
pub fn decode_response(response: &mut OperationResponse) {
    in_response(response, &mut decode);
}

/// Decodes the bytes in one update of a stream.
pub fn decode_update(update: &mut StreamResponse) {
    in_update(update, &mut decode);
}

/// Encodes the bytes in a response to the SDK.
pub fn encode_response(response: &mut OperationResponse) {
    in_response(response, &mut encode);
}

/// Encodes the bytes in one update of a stream.
pub fn encode_update(update: &mut StreamResponse) {
    in_update(update, &mut encode);
}

/// Encodes the bytes in a message to an agent that may use the SDK.
pub fn encode_message(message: &mut Message) {
    parts(&mut message.parts, &mut encode);
}

/// Applies `change` to the bytes of all files in a task, a list of tasks or a message. Streams and other responses are
/// unchanged.
fn in_response(response: &mut OperationResponse, change: &mut impl FnMut(&mut Vec<u8>)) {
    match response {
        OperationResponse::Sent(SendMessageResponse::Task(found)) | OperationResponse::Task(found) => {
            task(found, change)
        }
        OperationResponse::Sent(SendMessageResponse::Message(found)) => message(found, change),
        OperationResponse::Tasks(found) => found.tasks.iter_mut().for_each(|found| task(found, change)),
        OperationResponse::Updates(_)
        | OperationResponse::PushConfig(_)
        | OperationResponse::PushConfigs(_)
        | OperationResponse::Deleted
        | OperationResponse::Card(_) => {}
    }
}

/// Applies `change` to the bytes of all files in an update: a task, a message, the message of a status, or an artifact.
fn in_update(update: &mut StreamResponse, change: &mut impl FnMut(&mut Vec<u8>)) {
    match update {
        StreamResponse::Task(found) => task(found, change),
        StreamResponse::Message(found) => message(found, change),
        StreamResponse::StatusUpdate(found) => {
            found.status.message.iter_mut().for_each(|found| message(found, change));
        }
        StreamResponse::ArtifactUpdate(found) => artifact(&mut found.artifact, change),
    }
}

/// Decodes base64. Other bytes are left unchanged.
fn decode(bytes: &mut Vec<u8>) {
    if let Some(decoded) = std::str::from_utf8(bytes).ok().and_then(base64_bytes::decode) {
        *bytes = decoded;
    }
}

fn encode(bytes: &mut Vec<u8>) {
    *bytes = base64_bytes::encode(bytes).into_bytes();
}

fn task(task: &mut Task, change: &mut impl FnMut(&mut Vec<u8>)) {
    let messages = task.history.iter_mut().flatten().chain(&mut task.status.message);
    messages.for_each(|found| message(found, change));
    task.artifacts.iter_mut().flatten().for_each(|found| artifact(found, change));
}

fn message(message: &mut Message, change: &mut impl FnMut(&mut Vec<u8>)) {
    parts(&mut message.parts, change);
}

fn artifact(artifact: &mut Artifact, change: &mut impl FnMut(&mut Vec<u8>)) {
    parts(&mut artifact.parts, change);
}

/// Applies `change` to the bytes of parts that contain bytes.
fn parts(parts: &mut [Part], change: &mut impl FnMut(&mut Vec<u8>)) {
    for part in parts {
        if let PartContent::Raw(bytes) = &mut part.content {
            change(bytes);
        }
    }
}
