//! `[model]`: which model is asked first, which ones take its place, and why. Looks for keys; never asks a model.

use assistant::models::{Choice, Provider};
use secrecy::SecretString;

use super::address;
use super::document::{Origin, Table};
use super::form::{Form, Headers, Reference};
use super::secrets::{self, Variables};
use super::section::Reading;
use super::settings::Model;

/// Where a choice comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    /// Where the key is kept: `env:NAME`, `file:PATH`.
    pub(crate) key: Option<String>,
}

/// The models in the order in which they are asked.
#[derive(Debug)]
pub(crate) struct Models {
    pub(crate) choices: Vec<Choice>,
    /// Of each choice.
    pub(crate) sources: Vec<Source>,
    /// Why the first is the first, for people.
    pub(crate) reason: String,
}

const MAX_FALLBACKS: usize = 5;
const EXAMPLE_URL: &str = "http://localhost:11434/v1";

pub(crate) fn read(reading: &Reading<'_>, model: &Model) -> Models {
    let finder = Finder { reading, table: reading.document.section("model"), model };
    let first = finder.first();
    let mut chosen: Vec<_> = first.iter().map(|(chosen, _)| chosen.clone()).collect();
    finder.fallbacks(&mut chosen);
    let temperature = model.temperature.0;
    let (choices, sources) =
        chosen.into_iter().map(|Chosen { choice, source }| (Choice { temperature, ..choice }, source)).unzip();
    Models { choices, sources, reason: first.map(|(_, reason)| reason).unwrap_or_default() }
}

impl Models {
    /// Describes which model is asked first, why, and what happens when it fails.
    pub(crate) fn described(&self) -> String {
        let reason = &self.reason;
        let rest: Vec<_> = self.choices.iter().skip(1).map(Choice::label).collect();
        match self.choices.first() {
            _ if !rest.is_empty() => format!("{reason}; when it fails, {}", rest.join(", then ")),
            Some(first) if first.provider != Provider::Offline => format!("{reason}; nothing takes its place"),
            _ => reason.clone(),
        }
    }
}

/// Returns where the model is asked; nothing for the built-in one.
pub(crate) fn address_of(choice: &Choice) -> Option<&str> {
    let own = match choice.provider {
        Provider::Gemini => Some("https://generativelanguage.googleapis.com"),
        Provider::OpenAi => Some("https://api.openai.com/v1"),
        Provider::Anthropic => Some("https://api.anthropic.com"),
        Provider::OpenAiCompatible | Provider::Offline => None,
    };
    choice.base_url.as_deref().or(own)
}

#[derive(Clone)]
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

/// A model that is to be reached, before its key and address are known.
struct Wanted {
    provider: Provider,
    name: Option<String>,
    origin: Origin,
    /// Of the setting that asks for it. `base_url`, `api_key` and `headers` are meant for `provider` alone.
    setting: &'static str,
}

impl Wanted {
    fn is_first(&self) -> bool {
        self.setting == "provider"
    }
}

struct Finder<'a> {
    reading: &'a Reading<'a>,
    table: &'a Table,
    model: &'a Model,
}

impl Finder<'_> {
    fn mistake(&self, key: &str, says: impl std::fmt::Display) {
        self.reading.mistake(self.table, key, says);
    }

    /// Returns the model that is asked first, with the reason.
    fn first(&self) -> Option<(Chosen, String)> {
        let Some(provider) = self.model.provider else {
            if self.table.get("provider").is_none() {
                return self.by_key();
            }
            // The provider was reported; the rest may be wrong too.
            self.headers();
            self.checked(self.configured_url(), false);
            return None;
        };
        let origin = self.table.origin_of("provider");
        if provider == Provider::Offline {
            // The rest of [model] may stand: this is how it is switched off for a while.
            return Some((Chosen::offline(origin), "offline, built in, as configured".to_owned()));
        }
        let name = self.model.name.clone();
        let chosen = self.find(Wanted { provider, name, origin, setting: "provider" })?;
        let reason = format!("{}, as configured", described(&chosen.choice));
        Some((chosen, reason))
    }

    /// No provider is named: the first one with a key in the environment, else the built-in model.
    fn by_key(&self) -> Option<(Chosen, String)> {
        let is_given = |key: &&str| self.table.get(key).is_some_and(|value| *value != serde_json::json!([]));
        let alone: Vec<_> = ["base_url", "api_key", "headers"].into_iter().filter(is_given).collect();
        for key in &alone {
            // A key must not go to an address that was meant for something else.
            self.mistake(key, "needs model.provider: say what kind of server it is for");
        }
        if !alone.is_empty() {
            return None;
        }
        let found = Provider::ALL.into_iter().filter(|provider| *provider != Provider::OpenAiCompatible);
        let found =
            found.filter_map(|provider| Some((provider, self.reading.variables.first(known(provider).keys)?.0))).next();
        let name = self.model.name.clone();
        let Some((provider, variable)) = found else {
            if name.is_some() {
                let says = "names a model, but not whose: set model.provider, or a key such as GEMINI_API_KEY";
                self.mistake("name", says);
                return None;
            }
            let reason = "offline, built in: no key found and none needed".to_owned();
            return Some((Chosen::offline(Origin::Default), reason));
        };
        let origin = Origin::Variable(variable.to_owned());
        let chosen = self.find(Wanted { provider, name, origin, setting: "provider" })?;
        let reason = format!("{}, because {variable} is set", described(&chosen.choice));
        Some((chosen, reason))
    }

    fn fallbacks(&self, chosen: &mut Vec<Chosen>) {
        let entries = &self.model.fallback;
        if entries.len() > MAX_FALLBACKS {
            self.mistake("fallback", format!("must have at most {MAX_FALLBACKS} entries, not {}", entries.len()));
        }
        for entry in entries.iter().take(MAX_FALLBACKS) {
            let Some(next) = self.fallback(chosen.first(), entry) else { continue };
            let same = |other: &Chosen| {
                other.choice.label() == next.choice.label() && other.choice.base_url == next.choice.base_url
            };
            match chosen.iter().position(same) {
                None => chosen.push(next),
                Some(0) => {}
                Some(_) => self.mistake("fallback", format!("names '{entry}' twice")),
            }
        }
    }

    fn fallback(&self, first: Option<&Chosen>, entry: &str) -> Option<Chosen> {
        // Only the first colon: some models have one in their name.
        let (provider, name) = entry.split_once(':').map_or((entry, None), |(provider, name)| (provider, Some(name)));
        let provider = Provider::read(&provider.into()).ok();
        let name = name.map(|name| name.trim().to_owned());
        let origin = self.table.origin_of("fallback");
        let fits = match (provider, &name) {
            (Some(Provider::Offline), name) => name.is_none(),
            (Some(_), name) => name.as_deref() != Some(""),
            (None, _) => false,
        };
        let Some(provider) = provider.filter(|_| fits) else {
            let wanted = "offline, a provider such as openai, or one with its model such as openai:gpt-4o";
            self.mistake("fallback", format!("has an entry that must be {wanted}, not '{entry}'"));
            return None;
        };
        match first {
            _ if provider == Provider::Offline => Some(Chosen::offline(origin)),
            // The same server, and whatever is needed to be let in, with another model.
            Some(first) if first.choice.provider == provider => {
                let default = default_name(provider, self.reading.variables).unwrap_or(&first.choice.name);
                let name = name.unwrap_or_else(|| default.to_owned());
                let source = Source { origin, key: first.source.key.clone() };
                Some(Chosen { choice: Choice { name, ..first.choice.clone() }, source })
            }
            // What the first one lacks was reported.
            None if self.model.provider == Some(provider) => None,
            _ => self.find(Wanted { provider, name, origin, setting: "fallback" }),
        }
    }

    fn find(&self, wanted: Wanted) -> Option<Chosen> {
        let default = || default_name(wanted.provider, self.reading.variables).map(str::to_owned);
        let name = wanted.name.clone().or_else(default);
        if name.is_none() {
            self.mistake(
                wanted.setting,
                match wanted.is_first() {
                    true => "openai-compatible needs model.name: the model as its server calls it",
                    false => "openai-compatible needs a model: openai-compatible:NAME",
                },
            );
        }
        let base = self.base_url(&wanted);
        let key = self.key(&wanted, base.as_ref().map(|(_, origin)| origin));
        let headers = if wanted.is_first() { self.headers() } else { Vec::new() };
        let with_secrets = key.is_some() || headers.iter().any(|(_, is_secret)| *is_secret);
        if base.is_none() && wanted.provider == Provider::OpenAiCompatible {
            let remedy = if wanted.is_first() { "model.base_url or OPENAI_BASE_URL" } else { "OPENAI_BASE_URL" };
            self.mistake(wanted.setting, format!("openai-compatible needs an address: set {remedy}"));
        }
        let base_url = self.checked(base, with_secrets);
        let (key, kept) = key.unzip();
        let headers = headers.into_iter().map(|(header, _)| header).collect();
        let choice = Choice { base_url, key, headers, ..Choice::new(wanted.provider, name?) };
        Some(Chosen { choice, source: Source { origin: wanted.origin, key: kept } })
    }

    fn configured_url(&self) -> Option<(String, Origin)> {
        Some((self.model.base_url.clone()?, self.table.origin_of("base_url")))
    }

    fn base_url(&self, wanted: &Wanted) -> Option<(String, Origin)> {
        let configured = self.configured_url().filter(|_| wanted.is_first());
        configured.or_else(|| {
            let (variable, url) = self.reading.variables.first(known(wanted.provider).base_urls)?;
            Some((url.to_owned(), Origin::Variable(variable.to_owned())))
        })
    }

    fn checked(&self, base: Option<(String, Origin)>, with_secrets: bool) -> Option<String> {
        let (url, origin) = base?;
        let checked = address::check(&url, EXAMPLE_URL, with_secrets).and_then(|url| match url.contains(['?', '#']) {
            true => Err("must end before the ? or #".to_owned()),
            false => Ok(url),
        });
        let name = if origin == self.table.origin_of("base_url") { "model.base_url" } else { "the address" };
        checked.map_err(|says| self.reading.complain(origin, format!("{name} {says}"))).ok()
    }

    /// Returns the key and where it is kept.
    fn key(&self, wanted: &Wanted, base: Option<&Origin>) -> Option<(SecretString, String)> {
        let (key, kept, origin) = if wanted.is_first() && self.table.get("api_key").is_some() {
            let Reference(kept) = self.model.api_key.as_ref()?;
            (self.reading.resolve(self.table, "api_key", kept)?, kept.clone(), self.table.origin_of("api_key"))
        } else {
            let Known { keys, .. } = known(wanted.provider);
            // OpenAI's key is not for whatever server was configured: it goes with OPENAI_BASE_URL alone.
            let is_foreign = wanted.provider == Provider::OpenAiCompatible
                && base.is_none_or(|origin| *origin != Origin::Variable("OPENAI_BASE_URL".to_owned()));
            match self.reading.variables.first(keys).filter(|_| !is_foreign) {
                Some((variable, key)) => (key.into(), format!("env:{variable}"), Origin::Variable(variable.to_owned())),
                None if wanted.provider == Provider::OpenAiCompatible => return None,
                None => {
                    let or = if wanted.is_first() { " or model.api_key" } else { "" };
                    let provider = wanted.provider.as_str();
                    self.mistake(wanted.setting, format!("{provider} needs a key: set {}{or}", keys[0]));
                    return None;
                }
            }
        };
        if !secrets::is_header_value(&key) {
            self.reading.complain(origin, "the key holds characters that no key has".to_owned());
        }
        Some((key, kept))
    }

    /// Returns the headers that are sent along, each with whether it is a secret.
    fn headers(&self) -> Vec<((String, SecretString), bool)> {
        let Headers(entries) = &self.model.headers;
        let mut headers = Vec::new();
        for entry in entries {
            let Some((name, value)) = entry.split_once(':').map(|(name, value)| (name.trim(), value.trim())) else {
                // It may be a secret without a name.
                self.mistake("headers", "has an entry that must be \"Name: value\" or \"Name: env:VARIABLE\"");
                continue;
            };
            match secrets::header(self.reading.variables, name, value) {
                Ok(sent) => headers.push(((name.to_owned(), sent), secrets::is_reference(value))),
                Err(says) => self.mistake("headers", format!("{name} {says}")),
            }
        }
        headers
    }
}

fn described(choice: &Choice) -> String {
    let name = &choice.name;
    let title = known(choice.provider).title;
    match (&choice.base_url, choice.provider) {
        (Some(url), Provider::OpenAiCompatible) => format!("{name} at {url}"),
        (Some(url), _) => format!("{name} of {title} at {url}"),
        (None, _) => format!("{name} of {title}"),
    }
}
