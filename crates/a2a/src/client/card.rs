//! The card of an agent: where it is, what is on it in either version, and which of its addresses is taken.

use ::http::StatusCode;
use ::http::header::ACCEPT;
use reqwest::Url;
use serde_json::{Map, Value, json};

use super::http::{JSON, Wire, is_here};
use super::{Error, Options, lenient};
use crate::types::{AgentCard, AgentInterface, SecurityScheme};
use crate::{Binding, Version, v03};

/// Below the address of an agent.
const WELL_KNOWN: &str = "/.well-known/agent-card.json";
/// The largest card, in bytes.
const LARGEST: usize = 1 << 20;

/// What is tried first.
const ORDER: [(Binding, Version); 6] = [
    (Binding::JsonRpc, Version::V10),
    (Binding::HttpJson, Version::V10),
    (Binding::JsonRpc, Version::V03),
    (Binding::HttpJson, Version::V03),
    (Binding::Grpc, Version::V10),
    (Binding::Grpc, Version::V03),
];

/// Where an agent is spoken to, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) url: Url,
    pub(super) binding: Binding,
    pub(super) version: Version,
    pub(super) tenant: Option<String>,
}

/// The card at an address, and the address that it came from.
pub async fn fetch(address: &str, options: &Options) -> Result<(AgentCard, Url), Error> {
    let url = locate(address)?;
    let wire = Wire::new(&url, false, options)?;
    let patience = options.limits.call;
    let read = async {
        let mut response = wire.send(wire.get(url.clone()).header(ACCEPT, JSON)).await?;
        let status = response.status();
        if status.is_redirection() {
            return Err(Error::Card(format!(
                "{} is elsewhere, and redirects to other hosts are not followed",
                url.path()
            )));
        }
        if status == StatusCode::NOT_FOUND {
            return Err(Error::Card(format!("there is none at {}", url.path())));
        }
        if !status.is_success() {
            let body = wire.fault(&mut response).await;
            return Err(wire.refused(status, response.headers(), &body));
        }
        wire.body(&mut response, options.limits.answer.min(LARGEST)).await
    };
    let body = tokio::time::timeout(patience, read).await.map_err(|_| Error::Silent(patience))??;
    Ok((parse(&body).map_err(|why| Error::Card(wire.clean(&why)))?, url))
}

/// Where the card is: at the address itself, if it looks like one, or below it.
fn locate(address: &str) -> Result<Url, Error> {
    let mut url = Url::parse(address.trim()).map_err(|_| Error::Address("is no URL".to_owned()))?;
    check(&url).map_err(|why| Error::Address(why.to_owned()))?;
    url.set_fragment(None);
    let path = url.path().trim_end_matches('/');
    if !path.ends_with(".json") && !path.contains("/.well-known/") {
        let path = format!("{path}{WELL_KNOWN}");
        url.set_path(&path);
    }
    Ok(url)
}

fn check(url: &Url) -> Result<(), &'static str> {
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not carry credentials; give them separately");
    }
    Ok(())
}

/// What a card says, in the words of 1.x: cards of 1.x, of 0.3, and of both at once. What is not needed to speak to the
/// agent and cannot be read is passed over. The error is for people.
pub fn parse(bytes: &[u8]) -> Result<AgentCard, String> {
    let card: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    let Value::Object(mut card) = card else { return Err("it is no JSON object".to_owned()) };
    let old = old_interfaces(&card);
    let is_new = card.get("supportedInterfaces").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let mut parsed = if is_new {
        lenient::card(&mut card);
        let keeps = |scheme: &Value| serde_json::from_value::<SecurityScheme>(scheme.clone()).is_ok();
        retain(&mut card, "securitySchemes", keeps);
        serde_json::from_value::<AgentCard>(Value::Object(card)).map_err(|error| error.to_string())?
    } else {
        card.entry("capabilities").or_insert_with(|| json!({}));
        card.entry("version").or_insert_with(|| json!(""));
        let keeps = |scheme: &Value| serde_json::from_value::<v03::SecurityScheme>(scheme.clone()).is_ok();
        retain(&mut card, "securitySchemes", keeps);
        serde_json::from_value::<v03::AgentCard>(Value::Object(card)).map_err(|error| error.to_string())?.into()
    };
    for interface in old {
        let is_same = |other: &AgentInterface| {
            same_binding(&other.protocol_binding, &interface.protocol_binding)
                && spoken(&other.protocol_version) == Some(Version::V03)
        };
        if !parsed.supported_interfaces.iter().any(is_same) {
            parsed.supported_interfaces.push(interface);
        }
    }
    Ok(parsed)
}

/// The addresses that a card has for callers of 0.3. A card of both versions may name them only there.
fn old_interfaces(card: &Map<String, Value>) -> Vec<AgentInterface> {
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
    let is_old = |interface: &AgentInterface| spoken(&interface.protocol_version) == Some(Version::V03);
    first.into_iter().chain(rest).filter(is_old).collect()
}

fn retain(card: &mut Map<String, Value>, field: &str, keeps: impl Fn(&Value) -> bool) {
    match card.get_mut(field) {
        Some(Value::Object(entries)) => entries.retain(|_, value| keeps(value)),
        Some(_) => drop(card.shift_remove(field)),
        None => {}
    }
}

/// Versions before 0.3 were close enough to it.
fn spoken(version: &str) -> Option<Version> {
    match Version::named(version) {
        Ok(version) => Some(version),
        Err(_) => version.starts_with("0.2").then_some(Version::V03),
    }
}

fn same_binding(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// The best address on a card.
pub(super) fn choose(card: &AgentCard, from: &Url, options: &Options) -> Result<Place, Error> {
    let mut why = None;
    for (binding, version) in ORDER {
        if options.binding.is_some_and(|only| only != binding) || options.version.is_some_and(|only| only != version) {
            continue;
        }
        let fits = |interface: &&AgentInterface| {
            same_binding(&interface.protocol_binding, binding.as_str())
                && spoken(&interface.protocol_version) == Some(version)
        };
        for interface in card.supported_interfaces.iter().filter(fits) {
            match address(interface, binding, from, options) {
                Ok(url) => {
                    let tenant = interface.tenant.clone().filter(|_| version == Version::V10);
                    return Ok(Place { url, binding, version, tenant });
                }
                Err(cause) => why = Some(why.unwrap_or(cause)),
            }
        }
    }
    Err(Error::Card(why.unwrap_or_else(|| "it has no address that speaks what is wanted".to_owned())))
}

fn address(interface: &AgentInterface, binding: Binding, from: &Url, options: &Options) -> Result<Url, String> {
    let said = match binding {
        Binding::Grpc => with_scheme(&interface.url, from),
        Binding::JsonRpc | Binding::HttpJson => interface.url.clone(),
    };
    let url = from.join(&said).map_err(|_| "an address on it is no URL".to_owned())?;
    check(&url).map_err(|why| format!("an address on it {why}"))?;
    if options.other_hosts {
        return Ok(url);
    }
    if url.host_str() != from.host_str() && !(is_here(&url) && is_here(from)) {
        let host: String = url.host_str().unwrap_or_default().chars().take(80).collect();
        return Err(format!("it leads to another host ({host}), which was not allowed"));
    }
    if from.scheme() == "https" && url.scheme() == "http" {
        return Err("it leads away from TLS, which was not allowed".to_owned());
    }
    Ok(url)
}

/// Addresses of gRPC are often written without a scheme; then it is that of the card.
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

    fn one(url: &str, binding: &str, version: &str) -> Value {
        json!({"url": url, "protocolBinding": binding, "protocolVersion": version})
    }

    fn chosen(card: &Value, options: &Options) -> Result<(String, Binding, Version), Error> {
        let parsed = parse(card.to_string().as_bytes()).map_err(Error::Card)?;
        let from = Url::parse("http://agent.example/.well-known/agent-card.json").unwrap();
        choose(&parsed, &from, options).map(|place| (place.url.to_string(), place.binding, place.version))
    }

    #[test]
    fn a_card_is_at_its_address_or_below() {
        for (address, expected) in [
            ("http://a.example", "http://a.example/.well-known/agent-card.json"),
            ("https://a.example/agents/x/", "https://a.example/agents/x/.well-known/agent-card.json"),
            ("http://a.example/my.json?k=1", "http://a.example/my.json?k=1"),
            ("http://a.example/.well-known/agent-card.json#x", "http://a.example/.well-known/agent-card.json"),
        ] {
            assert_eq!(locate(address).unwrap().as_str(), expected);
        }
        for address in ["", "agent", "file:///etc/passwd", "http://me:secret@a.example"] {
            let error = locate(address).unwrap_err().to_string();
            assert!(error.starts_with("the address of the agent ") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_best_of_several_ways_is_taken() {
        let all = json!([
            one("agent.example:5", "GRPC", "1.0"),
            one("http://agent.example/3", "JSONRPC", "0.3"),
            one("http://agent.example/4", "HTTP+JSON", "0.3.0"),
            one("http://agent.example/2", "http+json", "1.0"),
            one("http://agent.example/1", "JSONRPC", "1.0.1"),
            one("http://agent.example/0", "JSONRPC", "2.0"),
            one("http://agent.example/0", "SLIMRPC", "1.0"),
        ]);
        let pick = |binding, version| chosen(&card(all.clone()), &Options { binding, version, ..Options::default() });
        assert_eq!(pick(None, None).unwrap().0, "http://agent.example/1");
        assert_eq!(pick(Some(Binding::HttpJson), None).unwrap().0, "http://agent.example/2");
        assert_eq!(pick(None, Some(Version::V03)).unwrap().0, "http://agent.example/3");
        assert_eq!(pick(Some(Binding::HttpJson), Some(Version::V03)).unwrap().0, "http://agent.example/4");
        assert_eq!(pick(Some(Binding::Grpc), None).unwrap().0, "http://agent.example:5/");
        pick(Some(Binding::Grpc), Some(Version::V03)).unwrap_err();
    }

    #[test]
    fn cards_of_0_3_and_of_both_are_read() {
        let old = json!({"name": "n", "version": "1", "url": "http://agent.example/a", "protocolVersion": "0.3.0",
            "capabilities": {"streaming": true}, "skills": [],
            "additionalInterfaces": [{"url": "http://agent.example/b", "transport": "HTTP+JSON"}]});
        let expected = ("http://agent.example/a".to_owned(), Binding::JsonRpc, Version::V03);
        assert_eq!(chosen(&old, &Options::default()).unwrap(), expected);
        let rest = Options { binding: Some(Binding::HttpJson), ..Options::default() };
        assert_eq!(chosen(&old, &rest).unwrap().0, "http://agent.example/b");
        let mut both = card(json!([one("http://agent.example/new", "JSONRPC", "1.0")]));
        both.as_object_mut().unwrap().extend(old.as_object().unwrap().clone());
        assert_eq!(chosen(&both, &Options::default()).unwrap().0, "http://agent.example/new");
        let v03 = Options { version: Some(Version::V03), ..Options::default() };
        assert_eq!(chosen(&both, &v03).unwrap().0, "http://agent.example/a");
        for nothing in [json!({}), json!([]), json!({"name": "n"}), json!({"name": "n", "supportedInterfaces": []})] {
            assert!(matches!(chosen(&nothing, &Options::default()), Err(Error::Card(_))), "{nothing}");
        }
    }

    #[test]
    fn a_card_leads_to_no_other_host() {
        let card = card(json!([one("http://evil.example/", "JSONRPC", "1.0")]));
        let error = chosen(&card, &Options::default()).unwrap_err();
        assert!(error.to_string().contains("evil.example"), "{error}");
        let anywhere = Options { other_hosts: true, ..Options::default() };
        assert_eq!(chosen(&card, &anywhere).unwrap().0, "http://evil.example/");
        let from = Url::parse("https://agent.example/").unwrap();
        let interface = serde_json::from_value(one("http://agent.example/", "JSONRPC", "1.0")).unwrap();
        assert!(address(&interface, Binding::JsonRpc, &from, &Options::default()).unwrap_err().contains("TLS"));
        let from = Url::parse("http://127.0.0.1:1/").unwrap();
        let interface = serde_json::from_value(one("http://localhost:2/", "JSONRPC", "1.0")).unwrap();
        address(&interface, Binding::JsonRpc, &from, &Options::default()).unwrap();
    }
}
