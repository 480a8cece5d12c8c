//! Malformed gRPC bodies never cause an internal error.

use a2a::proto::v1;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use proptest::prelude::*;
use prost::Message;
use tower::ServiceExt;

use super::double::Double;

const METHODS: [&str; 12] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "TaskSubscription",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

fn post(path: &str, body: Vec<u8>) -> Request<Body> {
    Request::post(path).header("content-type", "application/grpc").body(Body::from(body)).unwrap()
}

async fn ask(request: Request<Body>) -> Response<Body> {
    Double::unbound().router().oneshot(request).await.unwrap()
}

/// Returns the status and message of a call from its headers or trailers.
async fn outcome(response: Response<Body>) -> (u16, String) {
    let headers = response.headers().clone();
    let trailers = response.into_body().collect().await.unwrap().trailers().cloned().unwrap_or_default();
    let header =
        |name: &str| headers.get(name).or_else(|| trailers.get(name)).map(|value| value.to_str().unwrap().to_owned());
    let message = header("grpc-message").unwrap_or_default();
    let message = percent_encoding::percent_decode_str(&message).decode_utf8().unwrap().into_owned();
    (header("grpc-status").expect("a status").parse().unwrap(), message)
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[flag], length.to_be_bytes().as_slice(), message].concat()
}

#[tokio::test]
async fn malformed_calls_are_rejected() {
    // A2A-1
    let get = v1::GetTaskRequest { id: "t1".to_owned(), ..Default::default() }.encode_to_vec();
    let path = "/lf.a2a.v1.A2AService/GetTask";
    assert_eq!(outcome(ask(post(path, framed(0, &get))).await).await.0, 0);
    for (body, code, word) in [
        (Vec::new(), 3, "no message"),
        (vec![0, 0, 0], 3, "truncated"),
        (framed(0, &get)[..7].to_vec(), 3, "truncated"),
        ([framed(0, &get), framed(0, &get)].concat(), 3, "more than one"),
        ([framed(0, &get), vec![0]].concat(), 3, "truncated"),
        (framed(1, &get), 12, "compression"),
        (framed(0, &[0xff; 20]), 3, "cannot be decoded"),
        (vec![0, 0xff, 0xff, 0xff, 0xff], 8, "larger"),
    ] {
        let (status, message) = outcome(ask(post(path, body)).await).await;
        assert_eq!(status, code, "{message}");
        assert!(message.contains(word), "{message}");
    }
    let mut compressed = post(path, framed(0, &get));
    compressed.headers_mut().insert("grpc-encoding", "gzip".parse().unwrap());
    let response = ask(compressed).await;
    assert_eq!(response.headers()["grpc-accept-encoding"], "identity");
    assert_eq!(outcome(response).await.0, 12);
    let web = Request::post(path).header("content-type", "application/json").body(Body::from("{}")).unwrap();
    assert_eq!(ask(web).await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let get = Request::get(path).header("content-type", "application/grpc").body(Body::empty()).unwrap();
    assert_eq!(ask(get).await.status(), StatusCode::METHOD_NOT_ALLOWED);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bodies_cause_no_internal_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        is_framed in any::<bool>(),
        is_old in any::<bool>(),
        method in 0..METHODS.len(),
        cut in 0_usize..300,
        at in 0_usize..300,
    ) {
        // A2A-1
        let service = if is_old { "a2a.v1.A2AService" } else { "lf.a2a.v1.A2AService" };
        let path = format!("/{service}/{}", METHODS[method]);
        // Random bytes, and a request with random bytes in it.
        let mut request = v1::SendMessageRequest {
            message: Some(super::double::message(a2a::types::Role::User, "go").into()),
            ..Default::default()
        }.encode_to_vec();
        let at = at % request.len();
        request.splice(at..(at + bytes.len() % 5).min(request.len()), bytes.iter().copied().take(cut % 5));
        for message in [bytes, request] {
            let body = if is_framed { framed(0, &message) } else { message };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (status, message) = runtime.block_on(async { outcome(ask(post(&path, body)).await).await });
            prop_assert!([0, 3, 5, 8, 9, 12].contains(&status), "{status} {message}");
        }
    }
}
