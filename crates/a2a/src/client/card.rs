//! Fetches and parses agent cards of both versions, and selects an interface.

use ::http::StatusCode;
use ::http::header::ACCEPT;
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::http::{HttpTransport, JSON, is_loopback};
use super::{ClientOptions, Error, card_defaults};
use crate::types::{AgentCard, AgentInterface, SecurityScheme};
use crate::{Binding, Version, v03};

/// The path of the card below the base URL of an agent.
const WELL_KNOWN: &str = "/.well-known/agent-card.json";
/// The maximum size of a card, in bytes.
const MAX_CARD_BYTES: usize = 1 << 20;

/// The order of preference.
const PREFERENCE: [(Binding, Version); 6] = [
    (Binding::JsonRpc, Version::V10),
    (Binding::HttpJson, Version::V10),
    (Binding::JsonRpc, Version::V03),
    (Binding::HttpJson, Version::V03),
    (Binding::Grpc, Version::V10),
    (Binding::Grpc, Version::V03),
];

/// The interface of an agent that the client uses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SelectedInterface {
    pub(super) url: Url,
    pub(super) binding: Binding,
    pub(super) version: Version,
    /// The tenant of every request. Always `None` in 0.3.
    pub(super) tenant: Option<String>,
}

/// Fetches the card at an address. The address is that of the card if its path ends with `.json` or contains
/// `/.well-known/`, else a base URL. Returns the card with its URL before redirects. Reads at most 1 MiB, or fewer
/// bytes if the response limit is smaller, within the call timeout. Follows at most five redirects, only with 307 or
/// 308 and within the origin.
///
/// Fails with [`Error::Address`] if the address is invalid or the credentials cannot be a header. Fails with
/// [`Error::Card`] if the card is missing (404), invalid, or behind another redirect. Fails with [`Error::Refused`] for
/// other error statuses. Also fails if the agent cannot be reached in time or the card is too large.
pub async fn fetch(address: &str, options: &ClientOptions) -> Result<(AgentCard, Url), Error> {
    let url = card_url(address)?;
    let transport = HttpTransport::new(&url, false, options)?;
    let call_timeout = options.limits.call_timeout;
    let read = async {
        let mut response = transport.send(transport.get(url.clone()).header(ACCEPT, JSON)).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(Error::Card(format!(
                "{} redirects to another host; redirects to other hosts are not followed",
                url.path()
            )));
        }
        if status == StatusCode::NOT_FOUND {
            return Err(Error::Card(format!("no card was found at {}", url.path())));
        }
        if !status.is_success() {
            let body = transport.error_body(&mut response).await;
            return Err(transport.rejection(status, response.headers(), &body));
        }
        transport.body(&mut response, options.limits.max_response_bytes.min(MAX_CARD_BYTES)).await
    };
    let body = tokio::time::timeout(call_timeout, read).await.map_err(|_| Error::Timeout(call_timeout))??;
    Ok((parse(&body).map_err(|why| Error::Card(transport.clean(&why)))?, url))
}

/// Returns the URL of the card without its fragment: the address itself if its path ends with `.json` or contains
/// `/.well-known/`, else the well-known path below it. Keeps the query. Ignores surrounding whitespace and slashes at
/// the end of the path. Fails with [`Error::Address`] if it is not an HTTP or HTTPS URL or contains credentials.
fn card_url(address: &str) -> Result<Url, Error> {
    let mut url = Url::parse(address.trim()).map_err(|_| Error::Address("is not a valid URL".to_owned()))?;
    check_url(&url).map_err(|why| Error::Address(why.to_owned()))?;
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    if !path.ends_with(".json") && !path.contains("/.well-known/") {
        let path = format!("{path}{WELL_KNOWN}");
        url.set_path(&path);
    }
    Ok(url)
}

/// Fails with the reason if the URL is not HTTP or HTTPS, has no host, or contains credentials.
fn check_url(url: &Url) -> Result<(), &'static str> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain credentials; pass them separately");
    }
    Ok(())
}

/// Parses a card of 1.x, of 0.3, or of both. Returns it in the types of 1.x. A card with a non-empty
/// `supportedInterfaces` is read as 1.x, any other as 0.3. Some missing required fields get empty values. An interface
/// in the fields of 0.3 is added at the end, unless the card has a 0.3 interface with the same binding.
///
/// Security schemes of unknown types are ignored, and so is a `securitySchemes` that is not an object. Fails with a
/// message for people if the text is not a JSON object. Also fails if a required member is missing or another member
/// has a wrong type.
pub fn parse(bytes: &[u8]) -> Result<AgentCard, String> {
    let card: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Object(mut card) = card else { return Err("it is not a JSON object".to_owned()) };
    let v03_interfaces = v03_interfaces(&card);
    let is_v10 = card.get("supportedInterfaces").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let mut parsed = if is_v10 {
        card_defaults::fill_card(&mut card);
        let is_known = |scheme: &Value| serde_json::from_value::<SecurityScheme>(scheme.clone()).is_ok();
        retain(&mut card, "securitySchemes", is_known);
        serde_json::from_value::<AgentCard>(Value::Object(card)).map_err(|error| error.to_string())?
    } else {
        card.entry("capabilities").or_insert_with(|| json!({}));
        card.entry("version").or_insert_with(|| json!(""));
        let is_known = |scheme: &Value| serde_json::from_value::<v03::SecurityScheme>(scheme.clone()).is_ok();
        retain(&mut card, "securitySchemes", is_known);
        serde_json::from_value::<v03::AgentCard>(Value::Object(card)).map_err(|error| error.to_string())?.into()
    };
    for interface in v03_interfaces {
        let is_same = |other: &AgentInterface| {
            same_binding(&other.protocol_binding, &interface.protocol_binding)
                && supported_version(&other.protocol_version) == Some(Version::V03)
        };
        if !parsed.supported_interfaces.iter().any(is_same) {
            parsed.supported_interfaces.push(interface);
        }
    }
    Ok(parsed)
}

/// Returns the interfaces in the fields of 0.3: `url` first, then `additionalInterfaces`. A card of both versions may
/// list them only there. Without a transport it is JSON-RPC. Interfaces without a URL are left out. A missing
/// `protocolVersion` means 0.3. Returns nothing if it is neither 0.3 nor 0.2.
fn v03_interfaces(card: &Map<String, Value>) -> Vec<AgentInterface> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(ToOwned::to_owned);
    let version = text(card.get("protocolVersion")).unwrap_or_else(|| Version::V03.as_str().to_owned());
    let interface = |url: Option<String>, transport: Option<String>| {
        Some(AgentInterface {
            url: url.filter(|url| !url.is_empty())?,
            protocol_binding: transport.unwrap_or_else(|| Binding::JsonRpc.as_str().to_owned()),
            protocol_version: version.clone(),
            tenant: None,
        })
    };
    let first = interface(text(card.get("url")), text(card.get("preferredTransport")));
    let rest = card.get("additionalInterfaces").and_then(Value::as_array).into_iter().flatten();
    let rest = rest.filter_map(|other| interface(text(other.get("url")), text(other.get("transport"))));
    let is_v03 = |interface: &AgentInterface| supported_version(&interface.protocol_version) == Some(Version::V03);
    first.into_iter().chain(rest).filter(is_v03).collect()
}

/// Removes the entries of the map in `field` for which `keep` is false. A field that is not a map is removed as a
/// whole. A missing field has no effect.
fn retain(card: &mut Map<String, Value>, field: &str, keep: impl Fn(&Value) -> bool) {
    match card.get_mut(field) {
        Some(Value::Object(entries)) => entries.retain(|_, value| keep(value)),
        Some(_) => drop(card.shift_remove(field)),
        None => {}
    }
}

/// Returns the supported version of an interface, or `None` for other versions. 0.2 is compatible with 0.3.
fn supported_version(version: &str) -> Option<Version> {
    match Version::parse(version) {
        Ok(version) => Some(version),
        Err(_) => version.starts_with("0.2").then_some(Version::V03),
    }
}

fn same_binding(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Selects the first usable interface in the order of [`PREFERENCE`], among those that the options allow. `from` is the
/// URL of the card. The tenant of a 0.3 interface is dropped. Fails with [`Error::Card`] if none is usable, with the
/// reason for the first rejected one.
pub(super) fn select(card: &AgentCard, from: &Url, options: &ClientOptions) -> Result<SelectedInterface, Error> {
    let mut why = None;
    for (binding, version) in PREFERENCE {
        if options.binding.is_some_and(|only| only != binding) || options.version.is_some_and(|only| only != version) {
            continue;
        }
        let fits = |interface: &&AgentInterface| {
            same_binding(&interface.protocol_binding, binding.as_str())
                && supported_version(&interface.protocol_version) == Some(version)
        };
        for interface in card.supported_interfaces.iter().filter(fits) {
            match interface_url(interface, binding, from, options) {
                Ok(url) => {
                    let tenant = interface.tenant.clone().filter(|_| version == Version::V10);
                    return Ok(SelectedInterface { url, binding, version, tenant });
                }
                Err(cause) => why = Some(why.unwrap_or(cause)),
            }
        }
    }
    Err(Error::Card(why.unwrap_or_else(|| "it has no interface with a supported binding and version".to_owned())))
}

/// Returns the URL of an interface, which may be relative to that of the card. Fails with the reason if it is not an
/// HTTP URL or contains credentials. Unless the options allow other hosts, also fails if it points to another host, or
/// from TLS to plain HTTP. All loopback names count as one host, and ports are not compared.
fn interface_url(
    interface: &AgentInterface,
    binding: Binding,
    from: &Url,
    options: &ClientOptions,
) -> Result<Url, String> {
    let url = match binding {
        Binding::Grpc => with_scheme(&interface.url, from),
        Binding::JsonRpc | Binding::HttpJson => interface.url.clone(),
    };
    let url = from.join(&url).map_err(|_| "an interface URL is not valid".to_owned())?;
    check_url(&url).map_err(|why| format!("an interface URL {why}"))?;
    if options.allow_other_hosts {
        return Ok(url);
    }
    if url.host_str() != from.host_str() && !(is_loopback(&url) && is_loopback(from)) {
        let host: String = url.host_str().unwrap_or_default().chars().take(80).collect();
        return Err(format!("it points to another host ({host}), which is not allowed"));
    }
    if from.scheme() == "https" && url.scheme() == "http" {
        return Err("it points from TLS to plain HTTP, which is not allowed".to_owned());
    }
    Ok(url)
}

/// Returns a gRPC address with a scheme. Without one, it gets the scheme of the card. `grpc` and `grpcs` become `http`
/// and `https`. Of a `dns` address only the last segment is used, with the scheme of the card. Other schemes are
/// unchanged.
fn with_scheme(address: &str, from: &Url) -> String {
    match address.split_once("://") {
        Some(("grpc", rest)) => format!("http://{rest}"),
        Some(("grpcs", rest)) => format!("https://{rest}"),
        Some(("dns", rest)) => format!("{}://{}", from.scheme(), rest.rsplit('/').next().unwrap_or(rest)),
        Some(_) => address.to_owned(),
        None => format!("{}://{address}", from.scheme()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(interfaces: Value) -> Value {
        json!({"name": "n", "version": "1", "supportedInterfaces": interfaces,
            "skills": [{"id": "s", "name": "s"}], "securitySchemes": {"odd": {"type": "new"}}})
    }

    fn interface(url: &str, binding: &str, version: &str) -> Value {
        json!({"url": url, "protocolBinding": binding, "protocolVersion": version})
    }

    fn selected(card: &Value, options: &ClientOptions) -> Result<(String, Binding, Version), Error> {
        let parsed = parse(card.to_string().as_bytes()).map_err(Error::Card)?;
        let from = Url::parse("http://agent.example/.well-known/agent-card.json").unwrap();
        select(&parsed, &from, options).map(|selected| (selected.url.to_string(), selected.binding, selected.version))
    }

    #[test]
    fn the_card_is_at_the_address_or_at_the_well_known_path() {
        for (address, expected) in [
            ("http://a.example", "http://a.example/.well-known/agent-card.json"),
            ("https://a.example/agents/x/", "https://a.example/agents/x/.well-known/agent-card.json"),
            ("http://a.example/my.json?k=1", "http://a.example/my.json?k=1"),
            ("http://a.example/.well-known/agent-card.json#x", "http://a.example/.well-known/agent-card.json"),
        ] {
            assert_eq!(card_url(address).unwrap().as_str(), expected);
        }
        for address in ["", "agent", "file:///etc/passwd", "http://me:secret@a.example"] {
            let error = card_url(address).unwrap_err().to_string();
            assert!(error.starts_with("the agent URL ") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_preferred_interface_is_selected() {
        let all = json!([
            interface("agent.example:5", "GRPC", "1.0"),
            interface("http://agent.example/3", "JSONRPC", "0.3"),
            interface("http://agent.example/4", "HTTP+JSON", "0.3.0"),
            interface("http://agent.example/2", "http+json", "1.0"),
            interface("http://agent.example/1", "JSONRPC", "1.0.1"),
            interface("http://agent.example/0", "JSONRPC", "2.0"),
            interface("http://agent.example/0", "SLIMRPC", "1.0"),
        ]);
        let pick = |binding, version| {
            selected(&card(all.clone()), &ClientOptions { binding, version, ..ClientOptions::default() })
        };
        assert_eq!(pick(None, None).unwrap().0, "http://agent.example/1");
        assert_eq!(pick(Some(Binding::HttpJson), None).unwrap().0, "http://agent.example/2");
        assert_eq!(pick(None, Some(Version::V03)).unwrap().0, "http://agent.example/3");
        assert_eq!(pick(Some(Binding::HttpJson), Some(Version::V03)).unwrap().0, "http://agent.example/4");
        assert_eq!(pick(Some(Binding::Grpc), None).unwrap().0, "http://agent.example:5/");
        pick(Some(Binding::Grpc), Some(Version::V03)).unwrap_err();
    }

    #[test]
    fn cards_of_0_3_and_of_both_versions_are_parsed() {
        let old = json!({"name": "n", "version": "1", "url": "http://agent.example/a", "protocolVersion": "0.3.0",
            "capabilities": {"streaming": true}, "skills": [],
            "additionalInterfaces": [{"url": "http://agent.example/b", "transport": "HTTP+JSON"}]});
        let expected = ("http://agent.example/a".to_owned(), Binding::JsonRpc, Version::V03);
        assert_eq!(selected(&old, &ClientOptions::default()).unwrap(), expected);
        let rest = ClientOptions { binding: Some(Binding::HttpJson), ..ClientOptions::default() };
        assert_eq!(selected(&old, &rest).unwrap().0, "http://agent.example/b");
        let mut both = card(json!([interface("http://agent.example/new", "JSONRPC", "1.0")]));
        both.as_object_mut().unwrap().extend(old.as_object().unwrap().clone());
        assert_eq!(selected(&both, &ClientOptions::default()).unwrap().0, "http://agent.example/new");
        let v03 = ClientOptions { version: Some(Version::V03), ..ClientOptions::default() };
        assert_eq!(selected(&both, &v03).unwrap().0, "http://agent.example/a");
        for nothing in [json!({}), json!([]), json!({"name": "n"}), json!({"name": "n", "supportedInterfaces": []})] {
            assert!(matches!(selected(&nothing, &ClientOptions::default()), Err(Error::Card(_))), "{nothing}");
        }
    }

    #[test]
    fn cards_cannot_redirect_to_another_host() {
        let card = card(json!([interface("http://evil.example/", "JSONRPC", "1.0")]));
        let error = selected(&card, &ClientOptions::default()).unwrap_err();
        assert!(error.to_string().contains("evil.example"), "{error}");
        let allowed = ClientOptions { allow_other_hosts: true, ..ClientOptions::default() };
        assert_eq!(selected(&card, &allowed).unwrap().0, "http://evil.example/");
        let from = Url::parse("https://agent.example/").unwrap();
        let parsed = serde_json::from_value(interface("http://agent.example/", "JSONRPC", "1.0")).unwrap();
        assert!(
            interface_url(&parsed, Binding::JsonRpc, &from, &ClientOptions::default()).unwrap_err().contains("TLS")
        );
        let from = Url::parse("http://127.0.0.1:1/").unwrap();
        let parsed = serde_json::from_value(interface("http://localhost:2/", "JSONRPC", "1.0")).unwrap();
        interface_url(&parsed, Binding::JsonRpc, &from, &ClientOptions::default()).unwrap();
    }
}
