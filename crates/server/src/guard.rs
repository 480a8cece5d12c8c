//! Which pages in a browser may talk to the server. A server on loopback has no password, so a web page must not reach
//! it under a name of its own (`Host`) or from a page of its own (`Origin`).

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{App, Problem, Settings};

pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    match allowed(&request, &app.in_force().settings) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn allowed(request: &Request, settings: &Settings) -> Result<(), Problem> {
    // HTTP/2 has the host in the address instead of a header.
    let header = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(header).unwrap_or_default();
    let public = settings.public_url.as_deref();
    if settings.loopback_only && !is_this_machine(host) && Some(host) != public.and_then(authority) {
        let detail = "this server answers only as localhost; set server.public_url to reach it under another name";
        return Err(Problem::forbidden(detail));
    }
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let known = authority(origin) == Some(host) || public == Some(origin) || is_listed(origin, settings);
    if known {
        Ok(())
    } else {
        Err(Problem::forbidden("pages of this origin may not use this server; see server.cors_origins"))
    }
}

fn is_listed(origin: &str, settings: &Settings) -> bool {
    settings.cors_origins.iter().any(|listed| listed == origin)
}

/// `host:port` of `scheme://host:port`.
fn authority(origin: &str) -> Option<&str> {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Answers preflight requests of the listed origins.
pub(crate) fn cors(app: App) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin: &HeaderValue, _| {
            is_listed(origin.to_str().unwrap_or_default(), &app.in_force().settings)
        }))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            HeaderName::from_static("a2a-extensions"),
            HeaderName::from_static("a2a-version"),
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-session-id"),
            HeaderName::from_static("x-a2a-extensions"),
            HeaderName::from_static("x-api-key"),
            HeaderName::from_static("x-request-id"),
        ])
        .expose_headers([
            HeaderName::from_static("a2a-extensions"),
            HeaderName::from_static("x-a2a-extensions"),
            HeaderName::from_static("mcp-session-id"),
            HeaderName::from_static("x-request-id"),
            header::RETRY_AFTER,
        ])
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn verdict(host: &str, origin: Option<&str>, settings: &Settings) -> bool {
        let mut request = Request::builder().uri("/api/tasks").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        allowed(&request.body(Body::empty()).unwrap(), settings).is_ok()
    }

    #[test]
    fn loopback_answers_only_to_its_own_names() {
        // OPS-3
        let settings = Settings::default();
        for host in ["localhost:7717", "LOCALHOST", "127.0.0.1:7717", "127.8.8.8", "[::1]:7717"] {
            assert!(verdict(host, None, &settings), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:7717", "127.0.0.1.evil.example", "192.168.1.2:7717", ""] {
            assert!(!verdict(host, None, &settings), "{host}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused_unless_listed() {
        // OPS-3
        let listed = Settings { cors_origins: vec!["https://app.example".into()], ..Settings::default() };
        let host = "localhost:7717";
        assert!(verdict(host, Some("http://localhost:7717"), &listed), "its own pages");
        assert!(verdict(host, Some("https://app.example"), &listed));
        for origin in ["https://evil.example", "null", "http://localhost:9999", "https://app.example.evil.example"] {
            assert!(!verdict(host, Some(origin), &listed), "{origin}");
        }
    }

    #[test]
    fn a_public_name_is_welcome_where_it_is_configured() {
        let settings = Settings { public_url: Some("https://adjutant.example".into()), ..Settings::default() };
        assert!(verdict("adjutant.example", Some("https://adjutant.example"), &settings));
        let open = Settings { loopback_only: false, ..Settings::default() };
        assert!(verdict("anything.example", None, &open));
        assert!(!verdict("anything.example", Some("https://evil.example"), &open));
    }
}
