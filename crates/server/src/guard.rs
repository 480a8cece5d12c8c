//! Protects the server from web pages of other origins. A server on loopback has no password. So it rejects requests
//! with a foreign `Host` (DNS rebinding) and requests from pages with a foreign `Origin`.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::{App, Problem, ServerSettings};

/// Rejects requests that [`check_origin`] does not allow.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    match check_origin(&request, &app.active_config().settings) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Fails with 403 if the host or the origin of the request is not allowed. With `loopback_only` the host must be a
/// loopback name or that of the public URL, otherwise any host is allowed. An origin must have the host and port of the
/// request, or be the public URL or a listed one. Requests without an origin pass.
fn check_origin(request: &Request, settings: &ServerSettings) -> Result<(), Problem> {
    // HTTP/2 sends the host as `:authority` instead of a header.
    let header = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(header).unwrap_or_default();
    let public = settings.public_url.as_deref();
    if settings.loopback_only && !is_loopback(host) && Some(host) != public.and_then(authority) {
        let detail = "this server accepts only the host name localhost; set server.public_url to use a different name";
        return Err(Problem::forbidden(detail));
    }
    let Some(origin) = request.headers().get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let is_allowed = authority(origin) == Some(host) || public == Some(origin) || is_listed(origin, settings);
    if is_allowed {
        Ok(())
    } else {
        Err(Problem::forbidden("pages of this origin may not use this server; add the origin to server.cors_origins"))
    }
}

/// Returns whether the origin equals an entry of `server.cors_origins` exactly.
fn is_listed(origin: &str, settings: &ServerSettings) -> bool {
    settings.cors_origins.iter().any(|listed| listed == origin)
}

/// Returns the text after `http://` or `https://`, or `None` for other schemes.
fn authority(origin: &str) -> Option<&str> {
    origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
}

/// Returns whether the host without its port is `localhost` or a loopback address.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// Returns the layer that answers preflight requests of the origins in `server.cors_origins`. A reload of the
/// configuration applies at once. Pages of these origins may use GET, POST, PUT, PATCH and DELETE and send the headers
/// that the interfaces define. They may read the ids of request and MCP session, the A2A extensions and `Retry-After`.
/// Credentials of the browser are not allowed.
pub(crate) fn cors(app: App) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin: &HeaderValue, _| {
            is_listed(origin.to_str().unwrap_or_default(), &app.active_config().settings)
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

    fn is_allowed(host: &str, origin: Option<&str>, settings: &ServerSettings) -> bool {
        let mut request = Request::builder().uri("/api/tasks").header("host", host);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        check_origin(&request.body(Body::empty()).unwrap(), settings).is_ok()
    }

    #[test]
    fn a_loopback_server_accepts_only_loopback_hosts() {
        // OPS-3
        let settings = ServerSettings::default();
        for host in ["localhost:7717", "LOCALHOST", "127.0.0.1:7717", "127.8.8.8", "[::1]:7717"] {
            assert!(is_allowed(host, None, &settings), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:7717", "127.0.0.1.evil.example", "192.168.1.2:7717", ""] {
            assert!(!is_allowed(host, None, &settings), "{host}");
        }
    }

    #[test]
    fn unlisted_origins_are_rejected() {
        // OPS-3
        let listed = ServerSettings { cors_origins: vec!["https://app.example".into()], ..ServerSettings::default() };
        let host = "localhost:7717";
        assert!(is_allowed(host, Some("http://localhost:7717"), &listed), "pages of the server itself");
        assert!(is_allowed(host, Some("https://app.example"), &listed));
        for origin in ["https://evil.example", "null", "http://localhost:9999", "https://app.example.evil.example"] {
            assert!(!is_allowed(host, Some(origin), &listed), "{origin}");
        }
    }

    #[test]
    fn the_host_of_public_url_is_accepted() {
        let settings =
            ServerSettings { public_url: Some("https://adjutant.example".into()), ..ServerSettings::default() };
        assert!(is_allowed("adjutant.example", Some("https://adjutant.example"), &settings));
        let open = ServerSettings { loopback_only: false, ..ServerSettings::default() };
        assert!(is_allowed("anything.example", None, &open));
        assert!(!is_allowed("anything.example", Some("https://evil.example"), &open));
    }
}
