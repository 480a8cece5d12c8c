//! Agents with malformed responses cause an error, never a panic, and never a call to another host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use a2a::client::{A2aClient, ClientLimits, ClientOptions, Error};
use a2a::types::{self, GetTaskRequest, Role};
use a2a::{Binding, Version};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use futures::TryStreamExt;
use proptest::prelude::*;
use serde_json::json;
use tokio::net::TcpListener;

use super::double::{message, serve};

/// Starts an agent with a fixed response and returns a client for it.
async fn agent(answer: impl Fn(&Request) -> Response + Clone + Send + Sync + 'static) -> A2aClient {
    agent_with_interface((Binding::JsonRpc, Version::V10), answer).await
}

async fn agent_with_interface(
    (binding, version): (Binding, Version),
    answer: impl Fn(&Request) -> Response + Clone + Send + Sync + 'static,
) -> A2aClient {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let from = format!("http://{}", listener.local_addr().unwrap());
    let card = json!({"name": "odd", "version": "1", "capabilities": {"streaming": true}, "supportedInterfaces": [
        {"url": from, "protocolBinding": binding.as_str(), "protocolVersion": version.as_str()}]});
    serve(listener, Router::new().fallback(move |request: Request| std::future::ready(answer(&request))));
    let limits = ClientLimits {
        call_timeout: Duration::from_secs(5),
        send_timeout: Duration::from_secs(5),
        ..ClientLimits::default()
    };
    let options = ClientOptions { limits, ..ClientOptions::default() };
    let card = a2a::client::card::parse(card.to_string().as_bytes()).unwrap();
    A2aClient::from_card(card, &from.parse().unwrap(), &options).unwrap()
}

fn get() -> GetTaskRequest {
    GetTaskRequest { id: "t1".to_owned(), history_length: None, tenant: None }
}

fn send() -> types::SendMessageRequest {
    types::SendMessageRequest { message: message(Role::User, "go"), configuration: None, metadata: None, tenant: None }
}

fn response(status: u16, kind: &str, body: impl Into<Body>) -> Response {
    Response::builder().status(status).header("content-type", kind).body(body.into()).unwrap()
}

#[tokio::test]
async fn malformed_responses_are_errors() {
    for (status, kind, body) in [
        (200, "application/json", ""),
        (200, "application/json", "[]"),
        (200, "application/json", "{\"jsonrpc\":\"2.0\",\"id\":99999999,\"result\":{}}"),
        (200, "text/html", "<h1>welcome</h1>"),
        (200, "text/event-stream", "data: x\n\n"),
    ] {
        let client = agent(move |_| response(status, kind, body)).await;
        let error = client.get(get()).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{body} {error:?}");
    }
    let client = agent(|_| response(502, "text/html", "<h1>bad gateway</h1>")).await;
    let error = client.get(get()).await.unwrap_err();
    assert_eq!(error.to_string(), "the agent rejected the call: HTTP 502 Bad Gateway");
    assert!(error.is_transient());
    let updates =
        agent(|_| response(200, "text/event-stream", ": hi\n\ndata: {}\n\n")).await.stream(send()).await.unwrap();
    assert!(matches!(updates.try_collect::<Vec<_>>().await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn unknown_error_codes_are_shown() {
    let body = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32050,\"message\":\"no\\nway\"}}";
    let client = agent(move |_| response(200, "application/json", body)).await;
    let error = client.get(get()).await.unwrap_err();
    assert_eq!(error.to_string(), "the agent reported an error: no way (code -32050)");
}

#[tokio::test]
async fn fields_omitted_by_protobuf_are_optional() {
    let rest = (Binding::HttpJson, Version::V10);
    let client = agent_with_interface(rest, |request| match request.uri().path() {
        "/tasks" => response(200, "application/json", "{}"),
        "/tasks/t1" => response(
            200,
            "application/json",
            r#"{"id":"t1","status":{"state":"TASK_STATE_WORKING"},
            "artifacts":[{"artifactId":"a"}],"history":[{"messageId":"m","role":"ROLE_USER"}]}"#,
        ),
        _ => response(
            200,
            "text/event-stream",
            "data: {\"artifactUpdate\":{\"taskId\":\"t\",\"artifact\":{\"artifactId\":\"a\"}}}",
        ),
    })
    .await;
    assert_eq!(client.get(get()).await.unwrap().artifacts.unwrap()[0].artifact_id, "a");
    let all = serde_json::from_value(json!({})).unwrap();
    assert_eq!(client.list(all).await.unwrap().total_size, 0);
    let updates: Vec<_> = client.stream(send()).await.unwrap().try_collect().await.unwrap();
    assert_eq!(updates.len(), 1);
}

#[tokio::test]
async fn redirects_to_other_hosts_are_not_followed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let other_host = format!("http://{}/", listener.local_addr().unwrap());
    let counted = calls.clone();
    let count = move |_: Request| {
        counted.fetch_add(1, Ordering::SeqCst);
        std::future::ready(response(200, "application/json", "{}"))
    };
    serve(listener, Router::new().fallback(count));
    for status in [301, 302, 307, 308] {
        let location = other_host.clone();
        let client = agent(move |_| {
            Response::builder().status(status).header("location", &location).body(Body::empty()).unwrap()
        })
        .await;
        assert!(matches!(client.get(get()).await, Err(Error::Refused { .. })), "{status}");
        let error = A2aClient::discover(client.url().as_str(), &ClientOptions::default()).await.unwrap_err();
        assert!(matches!(error, Error::Card(_)), "{error:?}");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed() {
    let client = agent(|request| match request.uri().path() {
        "/" => Response::builder().status(308).header("location", "/there").body(Body::empty()).unwrap(),
        _ => response(200, "application/json", "{\"error\":{\"code\":-32001,\"message\":\"gone\"}}"),
    })
    .await;
    assert_eq!(client.get(get()).await.unwrap_err().to_string(), "the agent reported an error: gone");
}

#[tokio::test]
async fn malformed_grpc_trailers_are_errors() {
    for (status, details, expected) in
        [("5", "!!!", "NOT_FOUND"), ("x", "AAAA", "an error"), ("16", "", "UNAUTHENTICATED"), ("0", "", "cut off")]
    {
        let client = agent_with_interface((Binding::Grpc, Version::V10), move |_| {
            let response = Response::builder().header("content-type", "application/grpc").header("grpc-status", status);
            let response = response.header("grpc-status-details-bin", details).header("grpc-message", "%zz%ff");
            response.body(Body::empty()).unwrap()
        })
        .await;
        let error = client.get(get()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{status} {error}");
    }
    let client =
        agent_with_interface((Binding::Grpc, Version::V10), |_| response(404, "text/plain", "nothing here")).await;
    let error = client.get(get()).await.unwrap_err();
    assert!(matches!(error, Error::Refused { status: 404, .. }), "{error:?}");
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let _ = rustls::crypto::ring::default_provider().install_default();
    let error = A2aClient::discover(&url, &ClientOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)) && error.is_transient(), "{error:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn arbitrary_responses_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), json in "[\\[\\]{}\":,a-z0-9]{0,60}", interface in 0_usize..6) {
        let interface = [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc]
            .into_iter()
            .flat_map(|binding| [(binding, Version::V10), (binding, Version::V03)])
            .nth(interface)
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let kind = if interface.0 == Binding::Grpc { "application/grpc" } else { "application/json" };
            for body in [bytes, json.clone().into_bytes(), format!("data: {json}\n\n").into_bytes()] {
                for kind in [kind, "text/event-stream"] {
                    let answer = body.clone();
                    let client = agent_with_interface(interface, move |_| response(200, kind, answer.clone())).await;
                    client.get(get()).await.unwrap_err();
                    if let Ok(updates) = client.stream(send()).await {
                        let _ = updates.try_collect::<Vec<_>>().await;
                    }
                    let _ = a2a::client::card::parse(&body);
                }
            }
        });
    }
}
