//! Tests of A2A endpoints in the configuration.

use model::agent::endpoint::{A2aTransport, EndpointAuthType};

use super::*;

const USER: &str = "7d9f1a52-3c1e-4b7a-9d42-5f0e6f1c2b3a";

#[test]
fn endpoints_of_agents_and_the_assistant_are_read() {
    // A2A-2, A2A-3, A2A-4
    let file = format!(
        "\
[a2a]
allow_private_webhooks = true
transports = [\"json_rpc\"]
[a2a.auth]
type = \"bearer_token\"
token = \"env:ASSISTANT_TOKEN\"
user = \"{USER}\"
[[agents]]
id = \"codex\"
executable_path = \"/bin/cat\"
a2a = {{ transports = [\"json_rpc\", \"http_json\", \"grpc\"], auth = {{ type = \"api_key\", token = \"env:CODEX_TOKEN\", \
         user = \"{USER}\" }}, rate = {{ per_minute = 60, burst = 10 }} }}
"
    );
    let variables = [("ASSISTANT_TOKEN", "a"), ("CODEX_TOKEN", "c")];
    let config = load(&file, &variables, None).unwrap();
    let a2a = &config.server.a2a;
    assert!(a2a.allow_private_webhooks);
    assert_eq!(a2a.assistant.transports, [A2aTransport::JsonRpc]);
    assert_eq!(a2a.assistant.auth.as_ref().unwrap().kind, EndpointAuthType::BearerToken);
    let codex = &config.agents[0].a2a;
    assert_eq!(codex.auth.as_ref().unwrap().header(), Some("X-API-Key"));
    assert_eq!(codex.rate.unwrap().per_minute.get(), 60);

    let unset = load(&file, &[], None).unwrap_err();
    let expected = [
        "adjutant.toml:6: a2a.auth.token refers to the variable ASSISTANT_TOKEN, which is not set",
        "adjutant.toml:11: agents[codex].a2a.auth.token refers to the variable CODEX_TOKEN, which is not set",
    ];
    assert_eq!(unset, expected);
}

#[test]
fn mistakes_in_endpoints_name_the_line_and_the_field() {
    // A2A-2
    let file = "\
[a2a]
transprots = [\"grpc\"]
[[agents]]
id = \"a\"
executable_path = \"/bin/cat\"
a2a = { auth = { type = \"api_key\", token = \"hunter2\", user = \"me\" }, rate = { per_minute = 0 } }
[[agents]]
id = \"b\"
executable_path = \"/bin/cat\"
a2a = { auth = { type = \"jwt\" } }
";
    let mistakes = load(file, &[("ADJUTANT_A2A__TRANSPORTS", "grpc")], None).unwrap_err();
    let starts = [
        "adjutant.toml:2: a2a.transprots is not a known field; expected one of enabled",
        "adjutant.toml:6: agents[a].a2a.auth.token must be a reference, not the secret",
        "adjutant.toml:6: agents[a].a2a.auth.user must be the id of a user",
        "adjutant.toml:6: agents[a].a2a.rate.per_minute must be between 1 and",
        "adjutant.toml:10: agents[b].a2a.auth.type is jwt, and no [auth] is configured",
        "ADJUTANT_A2A__TRANSPORTS: the endpoint of the assistant must be in the file",
    ];
    assert_eq!(mistakes.len(), starts.len(), "{mistakes:#?}");
    for (mistake, start) in mistakes.iter().zip(starts) {
        assert!(mistake.starts_with(start), "{mistake}");
    }
    assert!(!mistakes.concat().contains("hunter2"));
    let config = load("", &[("ADJUTANT_A2A__ALLOW_PRIVATE_WEBHOOKS", "true")], None).unwrap();
    assert!(config.server.a2a.allow_private_webhooks);
}

#[test]
fn trusted_proxies_are_addresses_or_networks() {
    let file = "[server]\ntrusted_proxies = [\"10.0.0.0/8\", \"127.0.0.1\", \"::1\"]\n";
    let shown: Vec<_> = load(file, &[], None).unwrap().server.trusted_proxies.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["10.0.0.0/8", "127.0.0.1/32", "::1/128"]);
    let mistakes = load("[server]\ntrusted_proxies = [\"proxy.example\"]\n", &[], None).unwrap_err();
    assert!(
        mistakes[0].contains("server.trusted_proxies has an entry that must be an address or a network"),
        "{mistakes:?}"
    );
}
