//! Tests of `[model]`: the selection of models, keys and base URLs, and validation.

use assistant::models::{ModelConfig, ModelProvider};
use secrecy::ExposeSecret;

use super::load;
use crate::config::Config;

const GEMINI: (&str, &str) = ("GEMINI_API_KEY", "g-key");
const GOOGLE: (&str, &str) = ("GOOGLE_API_KEY", "google-key");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "o-key");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "a-key");

fn model(file: &str, variables: &[(&str, &str)]) -> Config {
    load(&format!("[model]\n{file}"), variables, None).unwrap()
}

fn mistakes(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
    load(&format!("[model]\n{file}"), variables, None).unwrap_err()
}

fn labels(config: &Config) -> Vec<String> {
    config.models.configs.iter().map(ModelConfig::label).collect()
}

fn key(config: &ModelConfig) -> Option<&str> {
    config.api_key.as_ref().map(ExposeSecret::expose_secret)
}

#[test]
fn the_model_is_chosen_by_configuration_then_by_key_then_offline() {
    // MODEL-1, MODEL-2: (file, variables, models, key of the first model, reason)
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str], Option<&'a str>, &'a str);
    let cases: &[Case<'_>] = &[
        ("", &[], &["offline"], None, "offline, built in: no API key found"),
        (
            "",
            &[GEMINI],
            &["gemini:gemini-2.5-flash", "offline"],
            Some("g-key"),
            "gemini-2.5-flash of Gemini, because GEMINI_API_KEY is set",
        ),
        (
            "",
            &[GOOGLE],
            &["gemini:gemini-2.5-flash", "offline"],
            Some("google-key"),
            "gemini-2.5-flash of Gemini, because GOOGLE_API_KEY is set",
        ),
        (
            "",
            &[GOOGLE, GEMINI, OPENAI, ANTHROPIC],
            &["gemini:gemini-2.5-flash", "offline"],
            Some("g-key"),
            "gemini-2.5-flash of Gemini, because GEMINI_API_KEY is set",
        ),
        (
            "",
            &[OPENAI, ANTHROPIC],
            &["openai:gpt-4o", "offline"],
            Some("o-key"),
            "gpt-4o of OpenAI, because OPENAI_API_KEY is set",
        ),
        (
            "",
            &[ANTHROPIC],
            &["anthropic:claude-sonnet-4-5", "offline"],
            Some("a-key"),
            "claude-sonnet-4-5 of Anthropic, because ANTHROPIC_API_KEY is set",
        ),
        (
            "",
            &[OPENAI, ("OPENAI_DEFAULT_MODEL", "gpt-5-mini")],
            &["openai:gpt-5-mini", "offline"],
            Some("o-key"),
            "gpt-5-mini of OpenAI, because OPENAI_API_KEY is set",
        ),
        (
            "name = \"o4\"",
            &[OPENAI, ("OPENAI_DEFAULT_MODEL", "gpt-5-mini")],
            &["openai:o4", "offline"],
            Some("o-key"),
            "o4 of OpenAI, because OPENAI_API_KEY is set",
        ),
        // Empty variables count as not set.
        (
            "provider = \"\"",
            &[("GEMINI_API_KEY", " "), OPENAI, ("OPENAI_DEFAULT_MODEL", ""), ("OPENAI_BASE_URL", "")],
            &["openai:gpt-4o", "offline"],
            Some("o-key"),
            "gpt-4o of OpenAI, because OPENAI_API_KEY is set",
        ),
        // A base URL without a key selects no model.
        (
            "",
            &[("OPENAI_BASE_URL", "http://localhost:1/v1")],
            &["offline"],
            None,
            "offline, built in: no API key found",
        ),
        (
            "provider = \"Anthropic\"\nname = \"claude-x\"",
            &[GEMINI, ANTHROPIC],
            &["anthropic:claude-x", "offline"],
            Some("a-key"),
            "claude-x of Anthropic, as configured",
        ),
        (
            "provider = \"gemini\"\napi_key = \"env:MINE\"",
            &[GEMINI, ("MINE", "my-key")],
            &["gemini:gemini-2.5-flash", "offline"],
            Some("my-key"),
            "gemini-2.5-flash of Gemini, as configured",
        ),
        (
            "provider = \"openai-compatible\"\nname = \"llama3.1:8b\"\nbase_url = \"http://localhost:11434/v1/\"",
            &[],
            &["openai-compatible:llama3.1:8b", "offline"],
            None,
            "llama3.1:8b at http://localhost:11434/v1, as configured",
        ),
        // The other settings may remain while the model is disabled, even without the key.
        (
            "provider = \"offline\"\nname = \"gpt-4o\"\napi_key = \"env:NOT_SET\"",
            &[OPENAI],
            &["offline"],
            None,
            "offline, built in, as configured",
        ),
    ];
    for (file, variables, models, secret, reason) in cases {
        let config = model(file, variables);
        assert_eq!(labels(&config), *models, "{file} {variables:?}");
        assert_eq!(key(&config.models.configs[0]), *secret, "{file} {variables:?}");
        assert_eq!(config.models.reason, *reason, "{file} {variables:?}");
    }
}

#[test]
fn base_urls_come_from_the_variables_of_each_provider() {
    let cases = [
        (GEMINI, "GOOGLE_GEMINI_BASE_URL", "https://proxy.example/gemini"),
        (GEMINI, "GEMINI_BASE_URL", "https://proxy.example/gemini"),
        (OPENAI, "OPENAI_BASE_URL", "https://proxy.example/v1"),
        (ANTHROPIC, "ANTHROPIC_BASE_URL", "https://proxy.example/a"),
    ];
    for (key, variable, url) in cases {
        let config = model("", &[key, (variable, url)]);
        assert_eq!(config.models.configs[0].base_url.as_deref(), Some(url), "{variable}");
        assert!(
            config.models.reason.contains(&format!(" at {url}, because {} is set", key.0)),
            "{}",
            config.models.reason
        );
        // The base URLs of unused providers are not validated.
        let config = model("provider = \"offline\"", &[key, (variable, "nowhere")]);
        assert_eq!(labels(&config), ["offline"]);
    }
    let both = [OPENAI, ("OPENAI_BASE_URL", "https://variable.example/v1")];
    let config = model("provider = \"openai\"\nbase_url = \"https://file.example/v1\"", &both);
    assert_eq!(
        config.models.configs[0].base_url.as_deref(),
        Some("https://file.example/v1"),
        "the file overrides the variable"
    );
}

#[test]
fn the_key_of_openai_is_not_sent_to_other_servers() {
    let file = "provider = \"openai-compatible\"\nname = \"m\"\n";
    let config = model(&format!("{file}base_url = \"https://other.example/v1\""), &[OPENAI]);
    assert_eq!(key(&config.models.configs[0]), None);
    let config = model(file, &[OPENAI, ("OPENAI_BASE_URL", "https://other.example/v1")]);
    assert_eq!(key(&config.models.configs[0]), Some("o-key"), "the variables of OpenAI apply together");
    let config =
        model(&format!("{file}base_url = \"https://other.example/v1\"\napi_key = \"env:OPENAI_API_KEY\""), &[OPENAI]);
    assert_eq!(key(&config.models.configs[0]), Some("o-key"), "the key is configured explicitly");
}

#[test]
fn fallbacks_keep_their_order_without_duplicates() {
    // MODEL-3: (file, models)
    let cases: &[(&str, &[&str])] = &[
        ("fallback = []", &["gemini:gemini-2.5-flash"]),
        ("fallback = [\"openai\", \"offline\"]", &["gemini:gemini-2.5-flash", "openai:gpt-4o", "offline"]),
        ("fallback = [\"gemini\", \"offline\"]", &["gemini:gemini-2.5-flash", "offline"]),
        (
            "fallback = [\"gemini:lite\", \"anthropic:claude-x\", \"openai:ft:gpt-4o:me\"]",
            &["gemini:gemini-2.5-flash", "gemini:lite", "anthropic:claude-x", "openai:ft:gpt-4o:me"],
        ),
        ("name = \"pro\"\nfallback = [\"gemini\"]", &["gemini:pro", "gemini:gemini-2.5-flash"]),
        (
            "provider = \"openai-compatible\"\nname = \"a\"\nbase_url = \"http://gpu:8000/v1\"\n\
             fallback = [\"openai-compatible:b\", \"openai-compatible\", \"gemini\"]",
            &["openai-compatible:a", "openai-compatible:b", "gemini:gemini-2.5-flash"],
        ),
        ("provider = \"offline\"\nfallback = [\"offline\"]", &["offline"]),
    ];
    for (file, models) in cases {
        assert_eq!(labels(&model(file, &[GEMINI, OPENAI, ANTHROPIC])), *models, "{file}");
    }
    let off = model("", &[GEMINI, ("ADJUTANT_MODEL__FALLBACK", "")]);
    assert_eq!(labels(&off), ["gemini:gemini-2.5-flash"]);
    let several = model("", &[GEMINI, OPENAI, ("ADJUTANT_MODEL__FALLBACK", "openai:gpt-5, offline")]);
    assert_eq!(labels(&several), ["gemini:gemini-2.5-flash", "openai:gpt-5", "offline"]);
}

#[test]
fn credentials_are_shared_only_with_fallbacks_of_the_same_provider() {
    let file = "provider = \"gemini\"\napi_key = \"env:MINE\"\nbase_url = \"https://proxy.example\"\n\
                headers = [\"X-Team: blue\"]\ntemperature = 0.5\nfallback = [\"gemini:lite\", \"openai\"]";
    let config = model(file, &[("MINE", "my-key"), OPENAI, ("OPENAI_BASE_URL", "https://o.example/v1")]);
    let [first, same, other] = config.models.configs.as_slice() else { panic!("{:?}", config.models) };
    for config in [first, same] {
        assert_eq!(key(config), Some("my-key"));
        assert_eq!(config.base_url.as_deref(), Some("https://proxy.example"));
        assert_eq!(config.headers.len(), 1);
    }
    assert_eq!((other.provider, key(other)), (ModelProvider::OpenAi, Some("o-key")));
    assert_eq!(other.base_url.as_deref(), Some("https://o.example/v1"));
    assert!(other.headers.is_empty());
    assert!(config.models.configs.iter().all(|config| config.temperature == Some(0.5)));
}

#[test]
fn the_description_names_the_fallbacks() {
    let line = |file: &str, variables: &[_]| model(file, variables).models.describe();
    assert_eq!(line("", &[]), "offline, built in: no API key found");
    let gemini = "gemini-2.5-flash of Gemini, because GEMINI_API_KEY is set";
    assert_eq!(line("", &[GEMINI]), format!("{gemini}; if it fails, offline"));
    let chain = line("fallback = [\"openai\", \"offline\"]", &[GEMINI, OPENAI]);
    assert_eq!(chain, format!("{gemini}; if it fails, openai:gpt-4o, then offline"));
    assert_eq!(line("fallback = []", &[GEMINI]), format!("{gemini}; no fallback"));
}

#[test]
fn the_temperature_is_a_number_or_the_default_of_the_provider() {
    let cases = [
        ("", Some(0.0)),
        ("temperature = \"\"", Some(0.0)),
        ("temperature = \"0.7\"", Some(0.7)),
        ("temperature = 0.7", Some(0.7)),
        ("temperature = 2", Some(2.0)),
        ("temperature = \"default\"", None),
    ];
    for (file, temperature) in cases {
        assert_eq!(model(file, &[GEMINI]).models.configs[0].temperature, temperature, "{file}");
    }
    for (wrong, shown) in [("\"warm\"", "warm"), ("2.1", "2.1"), ("-1", "-1"), ("nan", "nan"), ("\"inf\"", "inf")] {
        let expected =
            format!("adjutant.toml:2: model.temperature must be a number from 0 to 2, or default, not '{shown}'");
        assert_eq!(mistakes(&format!("temperature = {wrong}"), &[]), [expected]);
    }
    assert_eq!(mistakes("temperature = [1]", &[]), ["adjutant.toml:2: model.temperature must be a number"]);
}

#[test]
fn headers_are_plain_values_or_references() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cookie");
    std::fs::write(&path, "c=1\n").unwrap();
    let file = format!(
        "provider = \"openai-compatible\"\nname = \"m\"\nbase_url = \"https://azure.example/v1\"\n\
         headers = [\"api-key: env:AZURE\", \"X-Team:blue\", \"Cookie: file:{}\", \"Referer: https://a.example\"]",
        path.display()
    );
    let config = model(&file, &[("AZURE", "az-key")]);
    let headers: Vec<_> =
        config.models.configs[0].headers.iter().map(|(n, v)| (n.as_str(), v.expose_secret())).collect();
    assert_eq!(
        headers,
        [("api-key", "az-key"), ("X-Team", "blue"), ("Cookie", "c=1"), ("Referer", "https://a.example")]
    );
}

#[test]
fn keys_are_sent_unencrypted_only_to_private_hosts() {
    let private = [
        "localhost:1",
        "a.localhost",
        "127.0.0.1:11434",
        "127.8.0.1",
        "[::1]:80",
        "10.1.2.3",
        "172.16.0.9",
        "192.168.1.5",
        "169.254.1.1",
        "100.64.0.1",
        "[fd00::1]",
        "[fe80::1]",
        "[::ffff:10.0.0.1]",
        "ollama:11434",
        "gpu.local",
        "llm.svc.cluster.local",
        "host.docker.internal",
        "nas.home.arpa",
    ];
    let public = [
        "llm.example",
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "[2001:db8::1]",
        "[::ffff:8.8.8.8]",
        "localhost.example",
        "10.0.0.1.example",
        "local.example",
    ];
    let file = "provider = \"openai-compatible\"\nname = \"m\"\n";
    for host in private {
        model(&format!("{file}base_url = \"http://{host}\"\napi_key = \"env:K\""), &[("K", "k")]);
    }
    for host in public {
        let expected = "adjutant.toml:4: model.base_url would send the key unencrypted: use https:// (http:// only to \
                        this machine or a private network)";
        let plain = format!("{file}base_url = \"http://{host}\"\n");
        assert_eq!(mistakes(&format!("{plain}api_key = \"env:K\""), &[("K", "k")]), [expected], "{host}");
        assert_eq!(mistakes(&format!("{plain}headers = [\"api-key: env:K\"]"), &[("K", "k")]), [expected], "{host}");
        model(&plain, &[]);
        model(&format!("{file}base_url = \"https://{host}\"\napi_key = \"env:K\""), &[("K", "k")]);
    }
    let mistakes = mistakes("", &[OPENAI, ("OPENAI_BASE_URL", "http://llm.example/v1")]);
    assert!(mistakes[0].starts_with("OPENAI_BASE_URL: the URL would send the key unencrypted"), "{mistakes:?}");
}

#[test]
fn every_mistake_is_reported_with_its_origin() {
    let compatible = "provider = \"openai-compatible\"\nname = \"m\"\n";
    let url = |url: &str| format!("{compatible}base_url = \"{url}\"");
    let headers = |list: &str| format!("provider = \"gemini\"\nheaders = [{list}]");
    let no_url = "adjutant.toml:4: model.base_url must be a URL such as http://localhost:11434/v1";
    let credentials =
        "adjutant.toml:4: model.base_url contains a user or a password: remove it and configure a key or a header";
    let end = "adjutant.toml:4: model.base_url must not contain ? or #";
    let entry = "adjutant.toml:2: model.fallback has an entry that must be offline, a provider such as openai, or a \
                 provider and a model such as openai:gpt-4o, not ";
    let header_entry =
        "adjutant.toml:3: model.headers has an entry that must be \"Name: value\" or \"Name: env:VARIABLE\"";
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: &[Case<'_>] = &[
        (
            "provider = \"gemni\"",
            &[GEMINI],
            &[
                "adjutant.toml:2: model.provider must be one of offline, gemini, openai, anthropic, openai-compatible, not 'gemni'",
            ],
        ),
        (
            "provider = \"gemini\"",
            &[OPENAI],
            &["adjutant.toml:2: model.provider gemini needs a key: set GEMINI_API_KEY or model.api_key"],
        ),
        (
            "provider = \"openai\"",
            &[("OPENAI_API_KEY", "")],
            &["adjutant.toml:2: model.provider openai needs a key: set OPENAI_API_KEY or model.api_key"],
        ),
        (
            "",
            &[("ADJUTANT_MODEL__PROVIDER", "anthropic")],
            &["ADJUTANT_MODEL__PROVIDER: model.provider anthropic needs a key: set ANTHROPIC_API_KEY or model.api_key"],
        ),
        (
            "provider = \"openai-compatible\"",
            &[OPENAI],
            &[
                "adjutant.toml:2: model.provider openai-compatible needs model.name, the name of the model on its server",
                "adjutant.toml:2: model.provider openai-compatible needs a base URL: set model.base_url or OPENAI_BASE_URL",
            ],
        ),
        (
            "name = \"gpt-4o\"",
            &[],
            &["adjutant.toml:2: model.name needs a provider: set model.provider, or a key such as GEMINI_API_KEY"],
        ),
        (
            "base_url = \"http://localhost:1\"\napi_key = \"env:K\"\nheaders = [\"A: b\"]",
            &[GEMINI, ("K", "k")],
            &[
                "adjutant.toml:2: model.base_url needs model.provider, the kind of server",
                "adjutant.toml:3: model.api_key needs model.provider, the kind of server",
                "adjutant.toml:4: model.headers needs model.provider, the kind of server",
            ],
        ),
        (
            "provider = \"gemini\"\napi_key = \"hunter2\"",
            &[],
            &[
                "adjutant.toml:3: model.api_key must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
            ],
        ),
        (
            "provider = \"offline\"\napi_key = \"hunter2\"",
            &[],
            &[
                "adjutant.toml:3: model.api_key must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
            ],
        ),
        (
            "provider = \"gemini\"\napi_key = \"env:NONE\"",
            &[GEMINI],
            &["adjutant.toml:3: model.api_key refers to the variable NONE, which is not set"],
        ),
        (
            "",
            &[("GEMINI_API_KEY", "hunter2\u{7f}\nx")],
            &["GEMINI_API_KEY: the key contains characters that cannot be sent in a header"],
        ),
        (&url("localhost:11434"), &[], &[no_url]),
        (&url("ftp://host/v1"), &[], &[no_url]),
        (&url("http://"), &[], &[no_url]),
        (&url("hunter2"), &[], &[no_url]),
        (&url("http://me:hunter2@localhost/v1"), &[], &[credentials]),
        (&url("https://hunter2@host.example/v1"), &[], &[credentials]),
        (&url("https://host.example/v1?key=hunter2"), &[], &[end]),
        (
            "",
            &[ANTHROPIC, ("ANTHROPIC_BASE_URL", "proxy")],
            &["ANTHROPIC_BASE_URL: the URL must be a URL such as http://localhost:11434/v1"],
        ),
        (&headers("\"hunter2\""), &[GEMINI], &[header_entry]),
        (&headers("\"a b: c\""), &[GEMINI], &["adjutant.toml:3: model.headers a b is not a valid header name"]),
        (
            &headers(
                "\"Authorization: hunter2\", \"x-api-key: hunter2\", \"Cookie: hunter2\", \"X-Auth-Token: hunter2\"",
            ),
            &[GEMINI],
            &[
                "adjutant.toml:3: model.headers Authorization must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
                "adjutant.toml:3: model.headers x-api-key must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
                "adjutant.toml:3: model.headers Cookie must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
                "adjutant.toml:3: model.headers X-Auth-Token must be a reference, not the secret: write \"env:NAME\" or \"file:PATH\"",
            ],
        ),
        (
            &headers("\"X-A: env:NONE\", \"X-B: env:BAD\""),
            &[GEMINI, ("BAD", "hunter2\nx")],
            &[
                "adjutant.toml:3: model.headers X-A refers to the variable NONE, which is not set",
                "adjutant.toml:3: model.headers X-B is not a valid header value",
            ],
        ),
        (
            "headers = \"A: b\"",
            &[],
            &[
                "adjutant.toml:2: model.headers must be a list of strings such as \"Name: value\"",
                "adjutant.toml:2: model.headers needs model.provider, the kind of server",
            ],
        ),
        ("fallback = \"offline\"", &[], &["adjutant.toml:2: model.fallback must be a list of strings"]),
        ("fallback = [\"gpt-4o\"]", &[], &[&format!("{entry}'gpt-4o'")]),
        ("fallback = [\"openai:\"]", &[OPENAI], &[&format!("{entry}'openai:'")]),
        ("fallback = [\"offline:x\"]", &[], &[&format!("{entry}'offline:x'")]),
        (
            "fallback = [\"openai\", \"anthropic:x\"]",
            &[GEMINI],
            &[
                "adjutant.toml:2: model.fallback openai needs a key: set OPENAI_API_KEY",
                "adjutant.toml:2: model.fallback anthropic needs a key: set ANTHROPIC_API_KEY",
            ],
        ),
        (
            "fallback = [\"openai-compatible\"]",
            &[GEMINI],
            &[
                "adjutant.toml:2: model.fallback openai-compatible needs a model: openai-compatible:NAME",
                "adjutant.toml:2: model.fallback openai-compatible needs a base URL: set OPENAI_BASE_URL",
            ],
        ),
        (
            "fallback = [\"openai\", \"offline\", \"openai:gpt-4o\", \"offline\"]",
            &[GEMINI, OPENAI],
            &[
                "adjutant.toml:2: model.fallback contains 'openai:gpt-4o' twice",
                "adjutant.toml:2: model.fallback contains 'offline' twice",
            ],
        ),
        (
            "fallback = [\"gemini:1\", \"gemini:2\", \"gemini:3\", \"gemini:4\", \"gemini:5\", \"offline\"]",
            &[GEMINI],
            &["adjutant.toml:2: model.fallback must have at most 5 entries, not 6"],
        ),
        ("nmae = \"x\"", &[], &["adjutant.toml:2: unknown setting model.nmae; did you mean model.name?"]),
    ];
    for (file, variables, expected) in cases {
        let mistakes = mistakes(file, variables);
        assert_eq!(mistakes, *expected, "{file}");
        assert!(!mistakes.concat().contains("hunter2"), "a message contains the secret");
    }
    assert_eq!(
        load("model = \"gpt-4o\"", &[], None).unwrap_err(),
        ["adjutant.toml:1: model must be a section: [model]"]
    );
}

#[test]
fn secrets_are_never_printed() {
    let file = "provider = \"gemini\"\nheaders = [\"X-Token: env:OTHER\"]\nfallback = [\"openai\"]";
    let config = model(file, &[("GEMINI_API_KEY", "hunter2"), ("OPENAI_API_KEY", "hunter3"), ("OTHER", "hunter4")]);
    let printed = format!("{config:?} {}", config.models.describe());
    assert!(!printed.contains("hunter"), "{printed}");
}
