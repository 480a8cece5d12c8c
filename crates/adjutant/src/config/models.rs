//! `[model]`: selects the first model and its fallbacks. Looks for keys but never calls a model.

use assistant::models::{ModelConfig, ModelProvider};
use secrecy::SecretString;

use super::address;
use super::document::{ConfigTable, ValueOrigin};
use super::secrets::{self, EnvVariables};
use super::section::ConfigReader;
use super::settings::ModelSection;
use super::values::{HeaderList, SecretReference, SettingValue};

/// The origin of a model configuration.
#[derive(Clone, Debug)]
pub(crate) struct ModelSource {
    pub(crate) origin: ValueOrigin,
    /// The reference to the key: `env:NAME` or `file:PATH`.
    pub(crate) key: Option<String>,
}

/// The models in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct ConfiguredModels {
    pub(crate) configs: Vec<ModelConfig>,
    /// The source of each model.
    pub(crate) sources: Vec<ModelSource>,
    /// The reason for the first model, for display.
    pub(crate) reason: String,
}

/// The limit of entries in `model.fallback`.
const MAX_FALLBACKS: usize = 5;
const EXAMPLE_URL: &str = "http://localhost:11434/v1";

/// Selects the first model and its fallbacks and reports all mistakes. All models get the configured temperature. With
/// mistakes, the result may be incomplete or empty, and a fallback may be first.
pub(crate) fn read(reader: &ConfigReader<'_>, model: &ModelSection) -> ConfiguredModels {
    let finder = ModelFinder { reader, table: reader.document.section("model"), model };
    let first = finder.first();
    let mut chosen: Vec<_> = first.iter().map(|(chosen, _)| chosen.clone()).collect();
    finder.fallbacks(&mut chosen);
    let temperature = model.temperature.0;
    let (configs, sources) = chosen
        .into_iter()
        .map(|ChosenModel { config, source }| (ModelConfig { temperature, ..config }, source))
        .unzip();
    ConfiguredModels { configs, sources, reason: first.map(|(_, reason)| reason).unwrap_or_default() }
}

impl ConfiguredModels {
    /// Returns the reason for the first model, followed by the fallbacks in order. Without fallbacks, adds "no
    /// fallback", except for the offline model.
    pub(crate) fn describe(&self) -> String {
        let reason = &self.reason;
        let rest: Vec<_> = self.configs.iter().skip(1).map(ModelConfig::label).collect();
        match self.configs.first() {
            _ if !rest.is_empty() => format!("{reason}; if it fails, {}", rest.join(", then ")),
            Some(first) if first.provider != ModelProvider::Offline => format!("{reason}; no fallback"),
            _ => reason.clone(),
        }
    }
}

/// Returns the base URL of the model: the configured one, else the default of its provider. None without a base URL for
/// the offline model and for compatible servers, which have no default.
pub(crate) fn address_of(config: &ModelConfig) -> Option<&str> {
    let default = match config.provider {
        ModelProvider::Gemini => Some("https://generativelanguage.googleapis.com"),
        ModelProvider::OpenAi => Some("https://api.openai.com/v1"),
        ModelProvider::Anthropic => Some("https://api.anthropic.com"),
        ModelProvider::OpenAiCompatible | ModelProvider::Offline => None,
    };
    config.base_url.as_deref().or(default)
}

/// A model with its source.
#[derive(Clone)]
struct ChosenModel {
    config: ModelConfig,
    source: ModelSource,
}

impl ChosenModel {
    fn offline(origin: ValueOrigin) -> Self {
        Self { config: ModelConfig::offline(), source: ModelSource { origin, key: None } }
    }
}

/// The name of a provider and the variables with its keys and base URLs.
struct ProviderDefaults {
    title: &'static str,
    keys: &'static [&'static str],
    base_urls: &'static [&'static str],
}

/// Returns the name and variables of a provider. Compatible servers use those of OpenAI; the offline model has no
/// variables.
fn provider_defaults(provider: ModelProvider) -> ProviderDefaults {
    match provider {
        ModelProvider::Offline => ProviderDefaults { title: "offline", keys: &[], base_urls: &[] },
        ModelProvider::Gemini => ProviderDefaults {
            title: "Gemini",
            keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            base_urls: &["GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"],
        },
        ModelProvider::OpenAi | ModelProvider::OpenAiCompatible => {
            ProviderDefaults { title: "OpenAI", keys: &["OPENAI_API_KEY"], base_urls: &["OPENAI_BASE_URL"] }
        }
        ModelProvider::Anthropic => {
            ProviderDefaults { title: "Anthropic", keys: &["ANTHROPIC_API_KEY"], base_urls: &["ANTHROPIC_BASE_URL"] }
        }
    }
}

/// Returns the name of the model to use if none is configured. For OpenAI, the variable `OPENAI_DEFAULT_MODEL` takes
/// precedence. None for compatible servers, which have no default.
fn default_name(provider: ModelProvider, variables: &EnvVariables) -> Option<&str> {
    match provider {
        ModelProvider::Offline => Some("offline"),
        ModelProvider::Gemini => Some("gemini-2.5-flash"),
        ModelProvider::OpenAi => Some(variables.get("OPENAI_DEFAULT_MODEL").unwrap_or("gpt-4o")),
        ModelProvider::Anthropic => Some("claude-sonnet-4-5"),
        ModelProvider::OpenAiCompatible => None,
    }
}

/// A model to configure, before its key and base URL are known.
struct ModelRequest {
    provider: ModelProvider,
    name: Option<String>,
    origin: ValueOrigin,
    /// The setting that requests the model. `base_url`, `api_key` and `headers` apply to `provider` only.
    setting: &'static str,
}

impl ModelRequest {
    /// Returns true if this is the first model, not a fallback.
    fn is_first(&self) -> bool {
        self.setting == "provider"
    }
}

/// Selects models for the settings of `[model]`.
struct ModelFinder<'a> {
    reader: &'a ConfigReader<'a>,
    table: &'a ConfigTable,
    model: &'a ModelSection,
}

impl ModelFinder<'_> {
    fn mistake(&self, key: &str, message: impl std::fmt::Display) {
        self.reader.mistake(self.table, key, message);
    }

    /// Returns the first model and the reason for it: the configured provider, else a provider with a key in the
    /// environment, else the offline model. For a configured offline model, the other settings are ignored.
    ///
    /// Reports mistakes, and returns none if they leave no provider or no name. If `provider` is invalid, `headers` and
    /// `base_url` are still checked.
    fn first(&self) -> Option<(ChosenModel, String)> {
        let Some(provider) = self.model.provider else {
            if self.table.get("provider").is_none() {
                return self.by_key();
            }
            // The provider was reported. The other settings may have mistakes too.
            self.headers();
            self.checked(self.configured_url(), false);
            return None;
        };
        let origin = self.table.origin_of("provider");
        if provider == ModelProvider::Offline {
            // The other settings of [model] may remain, so that the model can be disabled temporarily.
            return Some((ChosenModel::offline(origin), "offline, built in, as configured".to_owned()));
        }
        let name = self.model.name.clone();
        let chosen = self.resolve(ModelRequest { provider, name, origin, setting: "provider" })?;
        let reason = format!("{}, as configured", describe(&chosen.config));
        Some((chosen, reason))
    }

    /// Returns the first of Gemini, OpenAI and Anthropic with a key in the environment, else the offline model, with
    /// the reason. Reports `base_url`, `api_key` and `headers`, which need `model.provider`, and `name` without any
    /// provider. Returns none then.
    fn by_key(&self) -> Option<(ChosenModel, String)> {
        let is_given = |key: &&str| self.table.get(key).is_some_and(|value| *value != serde_json::json!([]));
        let without_provider: Vec<_> = ["base_url", "api_key", "headers"].into_iter().filter(is_given).collect();
        for key in &without_provider {
            // A key must not be sent to an unrelated server.
            self.mistake(key, "needs model.provider, the kind of server");
        }
        if !without_provider.is_empty() {
            return None;
        }
        let found = ModelProvider::ALL.into_iter().filter(|provider| *provider != ModelProvider::OpenAiCompatible);
        let found = found
            .filter_map(|provider| Some((provider, self.reader.variables.first(provider_defaults(provider).keys)?.0)))
            .next();
        let name = self.model.name.clone();
        let Some((provider, variable)) = found else {
            if name.is_some() {
                let message = "needs a provider: set model.provider, or a key such as GEMINI_API_KEY";
                self.mistake("name", message);
                return None;
            }
            let reason = "offline, built in: no API key found".to_owned();
            return Some((ChosenModel::offline(ValueOrigin::Default), reason));
        };
        let origin = ValueOrigin::Variable(variable.to_owned());
        let chosen = self.resolve(ModelRequest { provider, name, origin, setting: "provider" })?;
        let reason = format!("{}, because {variable} is set", describe(&chosen.config));
        Some((chosen, reason))
    }

    /// Appends the fallbacks to `chosen`, from the first [`MAX_FALLBACKS`] entries. Reports too many entries and
    /// repeated ones, which are left out. Two models are equal if label and base URL are. An entry that equals the
    /// first model is ignored, and an invalid entry is left out.
    fn fallbacks(&self, chosen: &mut Vec<ChosenModel>) {
        let entries = &self.model.fallback;
        if entries.len() > MAX_FALLBACKS {
            self.mistake("fallback", format!("must have at most {MAX_FALLBACKS} entries, not {}", entries.len()));
        }
        for entry in entries.iter().take(MAX_FALLBACKS) {
            let Some(next) = self.fallback(chosen.first(), entry) else { continue };
            let same = |other: &ChosenModel| {
                other.config.label() == next.config.label() && other.config.base_url == next.config.base_url
            };
            match chosen.iter().position(same) {
                None => chosen.push(next),
                Some(0) => {}
                Some(_) => self.mistake("fallback", format!("contains '{entry}' twice")),
            }
        }
    }

    /// Returns the model of an entry `provider` or `provider:name`. A fallback with the provider of `first`, the first
    /// model, has the base URL, key and headers of `first`; any other is completed by [`ModelFinder::resolve`]. Without
    /// a name, it has the default name, for a compatible server the name of `first`.
    ///
    /// Reports an invalid entry and returns none: an unknown provider, an empty name, or a name for `offline`. Also
    /// returns none if the first model has the same provider and could not be selected.
    fn fallback(&self, first: Option<&ChosenModel>, entry: &str) -> Option<ChosenModel> {
        // Split at the first colon: names of models may contain colons.
        let (provider, name) = entry.split_once(':').map_or((entry, None), |(provider, name)| (provider, Some(name)));
        let provider = ModelProvider::parse(&provider.into()).ok();
        let name = name.map(|name| name.trim().to_owned());
        let origin = self.table.origin_of("fallback");
        let is_valid = match (provider, &name) {
            (Some(ModelProvider::Offline), name) => name.is_none(),
            (Some(_), name) => name.as_deref() != Some(""),
            (None, _) => false,
        };
        let Some(provider) = provider.filter(|_| is_valid) else {
            let expected = "offline, a provider such as openai, or a provider and a model such as openai:gpt-4o";
            self.mistake("fallback", format!("has an entry that must be {expected}, not '{entry}'"));
            return None;
        };
        match first {
            _ if provider == ModelProvider::Offline => Some(ChosenModel::offline(origin)),
            // The same server and credentials, with another model.
            Some(first) if first.config.provider == provider => {
                let default = default_name(provider, self.reader.variables).unwrap_or(&first.config.name);
                let name = name.unwrap_or_else(|| default.to_owned());
                let source = ModelSource { origin, key: first.source.key.clone() };
                Some(ChosenModel { config: ModelConfig { name, ..first.config.clone() }, source })
            }
            // The mistakes of the first model were reported.
            None if self.model.provider == Some(provider) => None,
            _ => self.resolve(ModelRequest { provider, name, origin, setting: "fallback" }),
        }
    }

    /// Completes a model with its name, key, base URL and headers. Headers apply to the first model only. Reports a
    /// missing key, a compatible server without a name or base URL, an invalid base URL and invalid headers. Returns
    /// none only if the name is missing; every other mistake leaves its value out.
    fn resolve(&self, request: ModelRequest) -> Option<ChosenModel> {
        let default = || default_name(request.provider, self.reader.variables).map(str::to_owned);
        let name = request.name.clone().or_else(default);
        if name.is_none() {
            self.mistake(
                request.setting,
                match request.is_first() {
                    true => "openai-compatible needs model.name, the name of the model on its server",
                    false => "openai-compatible needs a model: openai-compatible:NAME",
                },
            );
        }
        let base = self.base_url(&request);
        let key = self.key(&request, base.as_ref().map(|(_, origin)| origin));
        let headers = if request.is_first() { self.headers() } else { Vec::new() };
        let with_secrets = key.is_some() || headers.iter().any(|(_, is_secret)| *is_secret);
        if base.is_none() && request.provider == ModelProvider::OpenAiCompatible {
            let remedy = if request.is_first() { "model.base_url or OPENAI_BASE_URL" } else { "OPENAI_BASE_URL" };
            self.mistake(request.setting, format!("openai-compatible needs a base URL: set {remedy}"));
        }
        let base_url = self.checked(base, with_secrets);
        let (key, reference) = key.unzip();
        let headers = headers.into_iter().map(|(header, _)| header).collect();
        let config = ModelConfig { base_url, api_key: key, headers, ..ModelConfig::new(request.provider, name?) };
        Some(ChosenModel { config, source: ModelSource { origin: request.origin, key: reference } })
    }

    fn configured_url(&self) -> Option<(String, ValueOrigin)> {
        Some((self.model.base_url.clone()?, self.table.origin_of("base_url")))
    }

    /// Returns the base URL and its origin: `model.base_url` for the first model, else a variable of the provider. None
    /// means the default of the provider.
    fn base_url(&self, request: &ModelRequest) -> Option<(String, ValueOrigin)> {
        let configured = self.configured_url().filter(|_| request.is_first());
        configured.or_else(|| {
            let (variable, url) = self.reader.variables.first(provider_defaults(request.provider).base_urls)?;
            Some((url.to_owned(), ValueOrigin::Variable(variable.to_owned())))
        })
    }

    /// Returns the base URL without trailing slashes, or none without one. `with_secrets` is true if requests carry a
    /// key or a secret header. Reports a URL that [`address::check`] rejects or that contains `?` or `#`, and returns
    /// none then.
    fn checked(&self, base: Option<(String, ValueOrigin)>, with_secrets: bool) -> Option<String> {
        let (url, origin) = base?;
        let checked = address::check(&url, EXAMPLE_URL, with_secrets).and_then(|url| match url.contains(['?', '#']) {
            true => Err("must not contain ? or #".to_owned()),
            false => Ok(url),
        });
        let name = if origin == self.table.origin_of("base_url") { "model.base_url" } else { "the URL" };
        checked.map_err(|message| self.reader.report(origin, format!("{name} {message}"))).ok()
    }

    /// Returns the key and the reference to it: `model.api_key` for the first model, else a variable of the provider.
    /// `base` is the origin of the base URL. A compatible server gets `OPENAI_API_KEY` only if its URL comes from
    /// `OPENAI_BASE_URL`.
    ///
    /// Returns none without a key, which is reported except for compatible servers, and for an `api_key` that is
    /// invalid or cannot be resolved. Reports a key that cannot be sent in a header, and returns it.
    fn key(&self, request: &ModelRequest, base: Option<&ValueOrigin>) -> Option<(SecretString, String)> {
        let (key, reference, origin) = if request.is_first() && self.table.get("api_key").is_some() {
            let SecretReference(reference) = self.model.api_key.as_ref()?;
            (self.reader.resolve(self.table, "api_key", reference)?, reference.clone(), self.table.origin_of("api_key"))
        } else {
            let ProviderDefaults { keys, .. } = provider_defaults(request.provider);
            // The key of OpenAI is sent to a compatible server only if OPENAI_BASE_URL selects that server.
            let is_other_server = request.provider == ModelProvider::OpenAiCompatible
                && base.is_none_or(|origin| *origin != ValueOrigin::Variable("OPENAI_BASE_URL".to_owned()));
            match self.reader.variables.first(keys).filter(|_| !is_other_server) {
                Some((variable, key)) => {
                    (key.into(), format!("env:{variable}"), ValueOrigin::Variable(variable.to_owned()))
                }
                None if request.provider == ModelProvider::OpenAiCompatible => return None,
                None => {
                    let alternative = if request.is_first() { " or model.api_key" } else { "" };
                    let provider = request.provider.as_str();
                    self.mistake(request.setting, format!("{provider} needs a key: set {}{alternative}", keys[0]));
                    return None;
                }
            }
        };
        if !secrets::is_header_value(&key) {
            self.reader.report(origin, "the key contains characters that cannot be sent in a header".to_owned());
        }
        Some((key, reference))
    }

    /// Returns the headers with references resolved, each with true if its value was a reference. Reports and leaves
    /// out invalid entries: not `Name: value`, an invalid name or value, a plain secret, or a reference that cannot be
    /// resolved.
    fn headers(&self) -> Vec<((String, SecretString), bool)> {
        let HeaderList(entries) = &self.model.headers;
        let mut headers = Vec::new();
        for entry in entries {
            let Some((name, value)) = entry.split_once(':').map(|(name, value)| (name.trim(), value.trim())) else {
                // The entry may be a secret and is not shown.
                self.mistake("headers", "has an entry that must be \"Name: value\" or \"Name: env:VARIABLE\"");
                continue;
            };
            match secrets::header(self.reader.variables, name, value) {
                Ok(sent) => headers.push(((name.to_owned(), sent), secrets::is_reference(value))),
                Err(message) => self.mistake("headers", format!("{name} {message}")),
            }
        }
        headers
    }
}

/// Describes a model by its name, its provider and its base URL, if it has one. A compatible server is described by
/// name and base URL only.
fn describe(config: &ModelConfig) -> String {
    let name = &config.name;
    let title = provider_defaults(config.provider).title;
    match (&config.base_url, config.provider) {
        (Some(url), ModelProvider::OpenAiCompatible) => format!("{name} at {url}"),
        (Some(url), _) => format!("{name} of {title} at {url}"),
        (None, _) => format!("{name} of {title}"),
    }
}
