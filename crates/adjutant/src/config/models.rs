//! `[model]`: which model is asked first, which ones take its place, and why. Looks for keys; never asks a model.

use assistant::models::{Choice, Provider};
use secrecy::SecretString;

use super::address;
use super::layers::Origin;
use super::read::Reader;
use super::secrets::{self, Variables};

/// Where a choice comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    /// Where the key is kept: `env:NAME`, `file:PATH`.
    pub(crate) key: Option<String>,
}

const MAX_FALLBACKS: usize = 5;
const EXAMPLE_URL: &str = "http://localhost:11434/v1";

/// The models in the order in which they are asked, where each comes from, and why the first is the first.
pub(crate) fn read(reader: &mut Reader<'_>) -> (Vec<Choice>, Vec<Source>, String) {
    let temperature = temperature(reader);
    let (first, reason) = first(reader).unwrap_or_else(|| (Chosen::offline(Origin::Default), String::new()));
    let mut chosen = vec![first];
    fallbacks(reader, &mut chosen);
    let (choices, sources) =
        chosen.into_iter().map(|Chosen { choice, source }| (Choice { temperature, ..choice }, source)).unzip();
    (choices, sources, reason)
}

/// Where the model is asked; nothing for the built-in one.
pub(crate) fn address_of(choice: &Choice) -> Option<&str> {
    let own = match choice.provider {
        Provider::Gemini => Some("https://generativelanguage.googleapis.com"),
        Provider::OpenAi => Some("https://api.openai.com/v1"),
        Provider::Anthropic => Some("https://api.anthropic.com"),
        Provider::OpenAiCompatible | Provider::Offline => None,
    };
    choice.base_url.as_deref().or(own)
}

struct Chosen {
    choice: Choice,
    source: Source,
}

impl Chosen {
    fn offline(origin: Origin) -> Self {
        Self { choice: Choice::offline(), source: Source { origin, key: None } }
    }
}

/// What is known about a provider beyond its name in the configuration.
struct Known {
    title: &'static str,
    keys: &'static [&'static str],
    base_urls: &'static [&'static str],
}

fn known(provider: Provider) -> Known {
    match provider {
        Provider::Offline => Known { title: "offline", keys: &[], base_urls: &[] },
        Provider::Gemini => Known {
            title: "Gemini",
            keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            base_urls: &["GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"],
        },
        Provider::OpenAi | Provider::OpenAiCompatible => {
            Known { title: "OpenAI", keys: &["OPENAI_API_KEY"], base_urls: &["OPENAI_BASE_URL"] }
        }
        Provider::Anthropic => {
            Known { title: "Anthropic", keys: &["ANTHROPIC_API_KEY"], base_urls: &["ANTHROPIC_BASE_URL"] }
        }
    }
}

fn default_name(provider: Provider, variables: &Variables) -> Option<&str> {
    match provider {
        Provider::Offline => Some("offline"),
        Provider::Gemini => Some("gemini-2.5-flash"),
        Provider::OpenAi => Some(variables.get("OPENAI_DEFAULT_MODEL").unwrap_or("gpt-4o")),
        Provider::Anthropic => Some("claude-sonnet-4-5"),
        Provider::OpenAiCompatible => None,
    }
}

fn parse_provider(text: &str) -> Option<Provider> {
    Provider::ALL.into_iter().find(|provider| provider.as_str().eq_ignore_ascii_case(text))
}

fn temperature(reader: &mut Reader<'_>) -> Option<f64> {
    let parse = |text: &str| match text {
        "default" => Some(None),
        number => number.parse().ok().filter(|number| (0.0..=2.0).contains(number)).map(Some),
    };
    reader.parsed("model.temperature", "a number from 0 to 2, or default", parse).unwrap_or(Some(0.0))
}

/// The model that is asked first, with the reason.
fn first(reader: &mut Reader<'_>) -> Option<(Chosen, String)> {
    // Refused also where it would not be used.
    if reader.is_inline_secret("model.api_key") {
        reader.mistake("model.api_key", secrets::inline("model.api_key"));
        return None;
    }
    let Some(text) = reader.text("model.provider") else { return by_key(reader) };
    let Some(provider) = parse_provider(&text) else {
        let words = ["offline", "gemini", "openai", "anthropic", "openai-compatible"].join(", ");
        reader.mistake("model.provider", format!("model.provider must be one of {words}, not '{text}'"));
        return None;
    };
    let origin = reader.origin("model.provider");
    if provider == Provider::Offline {
        // The rest of [model] may stand: this is how it is switched off for a while.
        return Some((Chosen::offline(origin), "offline, built in, as configured".to_owned()));
    }
    let name = reader.text("model.name");
    let chosen = Wanted { provider, name, origin, setting: "model.provider", is_first: true }.find(reader)?;
    let reason = format!("{}, as configured", described(&chosen.choice));
    Some((chosen, reason))
}

/// No provider is named: the first one with a key in the environment, else the built-in model.
fn by_key(reader: &mut Reader<'_>) -> Option<(Chosen, String)> {
    let dependent = ["model.base_url", "model.api_key", "model.headers"];
    let alone: Vec<_> = dependent.into_iter().filter(|name| reader.is_given(name)).collect();
    for name in &alone {
        // A key must not go to an address that was meant for something else.
        reader.mistake(name, format!("{name} needs model.provider: say what kind of server it is for"));
    }
    if !alone.is_empty() {
        return None;
    }
    let variables = reader.variables;
    let found = Provider::ALL.into_iter().filter(|provider| *provider != Provider::OpenAiCompatible);
    let found = found.filter_map(|provider| Some((provider, variables.first(known(provider).keys)?.0))).next();
    let name = reader.text("model.name");
    let Some((provider, variable)) = found else {
        if name.is_some() {
            let message =
                "model.name names a model, but not whose: set model.provider, or a key such as GEMINI_API_KEY";
            reader.mistake("model.name", message.to_owned());
            return None;
        }
        let reason = "offline, built in: no key found and none needed".to_owned();
        return Some((Chosen::offline(Origin::Default), reason));
    };
    let origin = Origin::Variable(variable.to_owned());
    let chosen = Wanted { provider, name, origin, setting: "model.provider", is_first: true }.find(reader)?;
    let reason = format!("{}, because {variable} is set", described(&chosen.choice));
    Some((chosen, reason))
}

fn described(choice: &Choice) -> String {
    let (name, title) = (&choice.name, known(choice.provider).title);
    match (&choice.base_url, choice.provider) {
        (Some(url), Provider::OpenAiCompatible) => format!("{name} at {url}"),
        (Some(url), _) => format!("{name} of {title} at {url}"),
        (None, _) => format!("{name} of {title}"),
    }
}

fn fallbacks(reader: &mut Reader<'_>, chosen: &mut Vec<Chosen>) {
    let entries = reader.texts("model.fallback");
    if entries.len() > MAX_FALLBACKS {
        let message = format!("model.fallback must have at most {MAX_FALLBACKS} entries, not {}", entries.len());
        return reader.mistake("model.fallback", message);
    }
    for entry in entries {
        let Some(next) = fallback(reader, &chosen[0], &entry) else { continue };
        let same = |other: &Chosen| {
            other.choice.label() == next.choice.label() && other.choice.base_url == next.choice.base_url
        };
        match chosen.iter().position(same) {
            None => chosen.push(next),
            Some(0) => {}
            Some(_) => reader.mistake("model.fallback", format!("model.fallback names '{entry}' twice")),
        }
    }
}

fn fallback(reader: &mut Reader<'_>, first: &Chosen, entry: &str) -> Option<Chosen> {
    // Only the first colon: some models have one in their name.
    let (provider, name) = entry.split_once(':').map_or((entry, None), |(provider, name)| (provider, Some(name)));
    let provider = parse_provider(provider.trim());
    let name = name.map(|name| name.trim().to_owned());
    let origin = reader.origin("model.fallback");
    let fits = match (provider, &name) {
        (Some(Provider::Offline), name) => name.is_none(),
        (Some(_), name) => name.as_deref() != Some(""),
        (None, _) => false,
    };
    let Some(provider) = provider.filter(|_| fits) else {
        let message = format!(
            "every entry of model.fallback must be offline, a provider such as openai, or one with its model such as \
             openai:gpt-4o, not '{entry}'"
        );
        reader.mistake("model.fallback", message);
        return None;
    };
    if provider == Provider::Offline {
        return Some(Chosen::offline(origin));
    }
    if provider != first.choice.provider {
        return Wanted { provider, name, origin, setting: "model.fallback", is_first: false }.find(reader);
    }
    // The same server, and whatever is needed to be let in, with another model.
    let default = default_name(provider, reader.variables).unwrap_or(&first.choice.name);
    let name = name.unwrap_or_else(|| default.to_owned());
    let source = Source { origin, key: first.source.key.clone() };
    Some(Chosen { choice: Choice { name, ..first.choice.clone() }, source })
}

/// A model that is to be reached, before its key and address are known.
struct Wanted {
    provider: Provider,
    name: Option<String>,
    origin: Origin,
    /// The setting that asks for it.
    setting: &'static str,
    /// Whether `base_url`, `api_key` and `headers` are meant for it.
    is_first: bool,
}

impl Wanted {
    fn find(self, reader: &mut Reader<'_>) -> Option<Chosen> {
        let before = reader.mistakes.len();
        let name = self.name.clone().or_else(|| default_name(self.provider, reader.variables).map(str::to_owned));
        if name.is_none() {
            reader.mistake(
                self.setting,
                match self.is_first {
                    true => {
                        "model.provider openai-compatible needs model.name: the model as its server calls it".to_owned()
                    }
                    false => "model.fallback openai-compatible needs a model: openai-compatible:NAME".to_owned(),
                },
            );
        }
        let base = self.base_url(reader);
        let key = self.key(reader, base.as_ref().map(|(_, origin)| origin));
        let headers = if self.is_first { headers(reader) } else { Vec::new() };
        let with_secrets = key.is_some() || headers.iter().any(|(_, is_secret)| *is_secret);
        let base_url = self.checked(reader, base, with_secrets);
        // Whatever was reported, the choice would not be what was meant.
        if reader.mistakes.len() > before {
            return None;
        }
        let (key, kept) = key.unzip();
        let headers = headers.into_iter().map(|(header, _)| header).collect();
        let choice = Choice { base_url, key, headers, ..Choice::new(self.provider, name?) };
        Some(Chosen { choice, source: Source { origin: self.origin, key: kept } })
    }

    fn base_url(&self, reader: &Reader<'_>) -> Option<(String, Origin)> {
        if let Some(url) = reader.text("model.base_url").filter(|_| self.is_first) {
            return Some((url, reader.origin("model.base_url")));
        }
        let (variable, url) = reader.variables.first(known(self.provider).base_urls)?;
        Some((url.to_owned(), Origin::Variable(variable.to_owned())))
    }

    fn checked(&self, reader: &mut Reader<'_>, base: Option<(String, Origin)>, with_secrets: bool) -> Option<String> {
        let Some((url, origin)) = base else {
            if self.provider == Provider::OpenAiCompatible {
                let setting = self.setting;
                let remedy = if self.is_first { "model.base_url or OPENAI_BASE_URL" } else { "OPENAI_BASE_URL" };
                reader.mistake(setting, format!("{setting} openai-compatible needs an address: set {remedy}"));
            }
            return None;
        };
        let name = if matches!(origin, Origin::Variable(_)) { "the address" } else { "model.base_url" };
        match address::check(name, &url, EXAMPLE_URL, with_secrets) {
            Ok(url) if url.contains(['?', '#']) => {
                reader.mistake_at(origin, format!("{name} must end before the ? or #"));
                None
            }
            Ok(url) => Some(url),
            Err(message) => {
                reader.mistake_at(origin, message);
                None
            }
        }
    }

    /// The key and where it is kept.
    fn key(&self, reader: &mut Reader<'_>, base: Option<&Origin>) -> Option<(SecretString, String)> {
        let (key, kept, origin) = if self.is_first && reader.is_given("model.api_key") {
            let kept = reader.text("model.api_key")?;
            (reader.secret("model.api_key")?, kept, reader.origin("model.api_key"))
        } else {
            let Known { keys, .. } = known(self.provider);
            // OpenAI's key is not for whatever server was configured: it goes with OPENAI_BASE_URL alone.
            let is_foreign = self.provider == Provider::OpenAiCompatible
                && base.is_none_or(|origin| *origin != Origin::Variable("OPENAI_BASE_URL".to_owned()));
            match reader.variables.first(keys).filter(|_| !is_foreign) {
                Some((variable, key)) => (key.into(), format!("env:{variable}"), Origin::Variable(variable.to_owned())),
                None if self.provider == Provider::OpenAiCompatible => return None,
                None => {
                    let (setting, provider) = (self.setting, self.provider.as_str());
                    let or = if self.is_first { " or model.api_key" } else { "" };
                    reader.mistake(setting, format!("{setting} {provider} needs a key: set {}{or}", keys[0]));
                    return None;
                }
            }
        };
        if !secrets::is_header_value(&key) {
            reader.mistake_at(origin, "the key holds characters that no key has".to_owned());
        }
        Some((key, kept))
    }
}

type Header = (String, SecretString);

/// What is sent along, each with whether it is a secret.
fn headers(reader: &mut Reader<'_>) -> Vec<(Header, bool)> {
    let mut headers = Vec::new();
    for entry in reader.texts("model.headers") {
        let Some((name, value)) = entry.split_once(':').map(|(name, value)| (name.trim(), value.trim())) else {
            // It may be a secret without a name.
            let message = "every entry of model.headers must be \"Name: value\" or \"Name: env:VARIABLE\"";
            reader.mistake("model.headers", message.to_owned());
            continue;
        };
        let setting = format!("model.headers {name}");
        match secrets::header(reader.variables, &setting, name, value) {
            Ok(sent) => headers.push(((name.to_owned(), sent), secrets::is_reference(value))),
            Err(message) => reader.mistake("model.headers", message),
        }
    }
    headers
}
