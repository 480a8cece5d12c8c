//! Protects the server from web pages of other origins. A server on loopback has no password. So it rejects requests
//! with a foreign `Host` (DNS rebinding) and requests from pages with a foreign `Origin`. Headers of the responses
//! prevent that a page is shown in a frame, run with foreign scripts or kept in a cache.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::agent_caller::AgentCaller;
use crate::local_peer::{LocalClient, UnixPeer};
use crate::peer::warn_about_untrusted_proxy;
use crate::{App, Problem, ServerSettings};

/// The content that an HTML page may load. Swagger UI sets styles in its elements and shows images from data URLs.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                                       object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Rejects requests that [`check_client`] or [`check_origin`] does not allow. Adds the security headers to every
/// response. Warns about a proxy that is not trusted.
pub(crate) async fn check(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let is_private = request.uri().path().starts_with("/api/");
    let config = app.active_config();
    warn_about_untrusted_proxy(request.headers(), &config.settings.trusted_proxies);
    let checked = check_client(&app, &request, config.requires_token())
        .and_then(|agent| check_origin(&request, &config.settings).map(|()| agent));
    let mut response = match checked {
        Ok(agent) => {
            if let Some(agent) = agent {
                request.extensions_mut().insert(agent);
            }
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    add_security_headers(response.headers_mut(), is_private);
    response
}

/// Returns the run, if an agent sends the request. Fails if the agent may not send it, or if another user of this machine
/// uses a server without authentication or the Unix socket. `/health/live` is open to all.
fn check_client(app: &App, request: &Request, has_authentication: bool) -> Result<Option<AgentCaller>, Problem> {
    let client = request.extensions().get::<LocalClient>().copied();
    if request.uri().path() == "/health/live" {
        return Ok(None);
    }
    let is_unix = request.extensions().get::<UnixPeer>().is_some();
    if let Some(LocalClient::Agent(run)) = client {
        let run = run.filter(|_| !is_unix);
        return AgentCaller::find(app, request, run).map(Some);
    }
    if client.is_none_or(LocalClient::is_trusted) || (has_authentication && !is_unix) {
        return Ok(None);
    }
    if is_unix {
        return Err(Problem::forbidden("only the user who runs this server may use its socket"));
    }
    let detail = "only the user who runs this server may use it; configure [auth] for several users";
    Err(Problem::forbidden(detail))
}

/// Adds the headers that protect a response in a browser. HTML gets a content policy and cannot be shown in a frame.
/// A private response without a caching policy is not cached.
fn add_security_headers(headers: &mut HeaderMap, is_private: bool) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_private && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let is_html = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if is_html {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
}

/// Fails with 403 if the host or the origin of the request is not allowed. With `loopback_only` the host must be a
/// loopback name or that of the public URL, otherwise any host is allowed. A web page cannot reach the Unix socket, so
/// any host is allowed there. An origin must have the host and port of the
/// request, or be the public URL or a listed one. A request without an origin must satisfy [`check_fetch_site`].
fn check_origin(request: &Request, settings: &ServerSettings) -> Result<(), Problem> {
    // HTTP/2 sends the host as `:authority` instead of a header.
    let header = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(header).unwrap_or_default();
    let public = settings.public_url.as_deref();
    let is_unix = request.extensions().get::<UnixPeer>().is_some();
    if settings.loopback_only && !is_unix && !is_loopback(host) && Some(host) != public.and_then(authority) {
        let detail = "this server accepts only the host name localhost; set server.public_url to use a different name";
        return Err(Problem::forbidden(detail));
    }
    let Some(origin) = request.headers().get(header::ORIGIN) else { return check_fetch_site(request.headers()) };
    let origin = origin.to_str().unwrap_or_default();
    let is_allowed = authority(origin) == Some(host) || public == Some(origin) || is_listed(origin, settings);
    if is_allowed {
        Ok(())
    } else {
        Err(Problem::forbidden("pages of this origin may not use this server; add the origin to server.cors_origins"))
    }
}

/// Fails if a browser reports that a page of another origin caused the request. Browsers send no `Origin` for images,
/// scripts and links of a page. Following a link is allowed. Programs other than browsers do not send these headers.
fn check_fetch_site(headers: &HeaderMap) -> Result<(), Problem> {
    let value = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    match value("sec-fetch-site") {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) if value("sec-fetch-mode") == Some(b"navigate") => Ok(()),
        Some(_) => Err(Problem::forbidden("pages of other origins may not load content of this server")),
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
    fn requests_that_foreign_pages_cause_without_an_origin_are_rejected() {
        // OPS-3
        let is_allowed = |site: &str, mode: &str| {
            let request = Request::builder().uri("/api/tasks").header("host", "localhost");
            let request = request.header("sec-fetch-site", site).header("sec-fetch-mode", mode);
            check_origin(&request.body(Body::empty()).unwrap(), &ServerSettings::default()).is_ok()
        };
        assert!(is_allowed("same-origin", "cors") && is_allowed("none", "navigate"));
        assert!(is_allowed("cross-site", "navigate"), "a link on a foreign page");
        assert!(!is_allowed("cross-site", "no-cors") && !is_allowed("same-site", "no-cors"));
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
