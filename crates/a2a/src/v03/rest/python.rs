//! The bytes of a file in 0.3 as the official implementation for Python has them, in HTTP+JSON and gRPC.
//!
//! Where the protobuf message wants bytes, it puts their base64 text, and it believes to get such a text: bytes as they
//! are make it fail. Everyone else keeps to the message, so the two are told apart by the name of the caller.

use http::HeaderMap;
use http::header::USER_AGENT;

use crate::types::{Artifact, Message, Part, PartContent, SendMessageResponse, StreamResponse, Task};
use crate::{Answer, Request, bytes64};

/// Whether this caller is that implementation.
pub fn calls(headers: &HeaderMap) -> bool {
    let agent = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    agent.starts_with("python-httpx") || agent.starts_with("grpc-python")
}

/// From what such a caller sent to what it meant.
pub fn read_request(request: &mut Request) {
    if let Request::Send(request) | Request::Stream(request) = request {
        parts(&mut request.message.parts, &mut decode);
    }
}

/// The other way round, for callers of agents that may be made of it.
pub fn read_answer(answer: &mut Answer) {
    in_answer(answer, &mut decode);
}

/// The same for one update of a stream.
pub fn read_update(update: &mut StreamResponse) {
    in_update(update, &mut decode);
}

/// What such a caller understands as the bytes of an answer.
pub fn write(answer: &mut Answer) {
    in_answer(answer, &mut encode);
}

/// The same for one update of a stream.
pub fn write_update(update: &mut StreamResponse) {
    in_update(update, &mut encode);
}

/// What such an agent understands as the bytes of a message.
pub fn write_message(message: &mut Message) {
    parts(&mut message.parts, &mut encode);
}

fn in_answer(answer: &mut Answer, change: &mut impl FnMut(&mut Vec<u8>)) {
    match answer {
        Answer::Sent(SendMessageResponse::Task(found)) | Answer::Task(found) => task(found, change),
        Answer::Sent(SendMessageResponse::Message(found)) => message(found, change),
        Answer::Tasks(found) => found.tasks.iter_mut().for_each(|found| task(found, change)),
        Answer::Updates(_) | Answer::Push(_) | Answer::Pushes(_) | Answer::Deleted | Answer::Card(_) => {}
    }
}

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

/// What is no base64 is as it was meant.
fn decode(bytes: &mut Vec<u8>) {
    if let Some(meant) = std::str::from_utf8(bytes).ok().and_then(bytes64::decode) {
        *bytes = meant;
    }
}

fn encode(bytes: &mut Vec<u8>) {
    *bytes = bytes64::encode(bytes).into_bytes();
}

fn task(task: &mut Task, change: &mut impl FnMut(&mut Vec<u8>)) {
    let told = task.history.iter_mut().flatten().chain(&mut task.status.message);
    told.for_each(|found| message(found, change));
    task.artifacts.iter_mut().flatten().for_each(|found| artifact(found, change));
}

fn message(message: &mut Message, change: &mut impl FnMut(&mut Vec<u8>)) {
    parts(&mut message.parts, change);
}

fn artifact(artifact: &mut Artifact, change: &mut impl FnMut(&mut Vec<u8>)) {
    parts(&mut artifact.parts, change);
}

fn parts(parts: &mut [Part], change: &mut impl FnMut(&mut Vec<u8>)) {
    for part in parts {
        if let PartContent::Raw(bytes) = &mut part.content {
            change(bytes);
        }
    }
}
