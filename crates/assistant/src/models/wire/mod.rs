//! The languages of providers: where a request goes, how it is written, and what the events of an answer mean.
//!
//! None of them keeps anything: what was heard is in [`Heard`], what is told in [`Told`].

mod anthropic;
mod gemini;
mod openai;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fault::Fault;
use super::heard::Heard;
use super::prompt::Told;
use super::{Choice, Provider};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// Chat completions, of OpenAI and of those who speak as it does.
    OpenAi,
    Gemini,
    Anthropic,
}

/// A tool as it is offered.
pub(super) struct Tool<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) schema: Value,
}

/// All that is in a request.
pub(super) struct Ask<'a> {
    pub(super) model: &'a str,
    pub(super) temperature: Option<f64>,
    /// As [`Wire::tools`] has written them.
    pub(super) tools: Option<&'a RawValue>,
    pub(super) told: &'a Told<'a>,
}

impl Wire {
    /// Nothing for a model that is not asked over a wire.
    pub(super) fn of(provider: Provider) -> Option<Self> {
        match provider {
            Provider::OpenAi | Provider::OpenAiCompatible => Some(Self::OpenAi),
            Provider::Gemini => Some(Self::Gemini),
            Provider::Anthropic => Some(Self::Anthropic),
            Provider::Offline => None,
        }
    }

    /// Where the model is asked.
    pub(super) fn url(self, choice: &Choice) -> Result<Url, String> {
        let default = match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Anthropic => "https://api.anthropic.com/v1",
        };
        let base = choice.base_url.as_deref().unwrap_or(default);
        let mut url = Url::parse(base).map_err(|error| format!("'{base}' is no address: {error}"))?;
        let path = url.path().trim_end_matches('/').to_owned();
        // Two of them are usually given without the version.
        let path = match self {
            Self::OpenAi => format!("{path}/chat/completions"),
            Self::Anthropic if path.ends_with("/v1") => format!("{path}/messages"),
            Self::Anthropic => format!("{path}/v1/messages"),
            Self::Gemini => {
                let version = if path.is_empty() { "/v1beta" } else { "" };
                format!("{path}{version}/models/{}:streamGenerateContent", choice.name)
            }
        };
        url.set_path(&path);
        if self == Self::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Ok(url)
    }

    /// What goes with every request; the key among it.
    pub(super) fn headers(self, choice: &Choice) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self == Self::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
        }
        let own = choice.headers.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value.expose_secret())));
        let key = choice.key.as_ref().map(|key| match self {
            Self::OpenAi => (AUTHORIZATION.as_str(), Cow::Owned(format!("Bearer {}", key.expose_secret()))),
            Self::Gemini => ("x-goog-api-key", Cow::Borrowed(key.expose_secret())),
            Self::Anthropic => ("x-api-key", Cow::Borrowed(key.expose_secret())),
        });
        for (name, value) in own.chain(key) {
            let wrong = || format!("the header '{name}' cannot be sent: it holds what no header may");
            let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
        }
        Ok(headers)
    }

    /// Tools, written once for many requests.
    pub(super) fn tools(self, tools: &[Tool<'_>]) -> serde_json::Result<Box<RawValue>> {
        match self {
            Self::OpenAi => openai::tools(tools),
            Self::Gemini => gemini::tools(tools),
            Self::Anthropic => anthropic::tools(tools),
        }
    }

    /// The body of a request.
    pub(super) fn write(self, ask: &Ask<'_>) -> serde_json::Result<Vec<u8>> {
        let mut body = Vec::with_capacity(ask.tools.map_or(0, |tools| tools.get().len()) + 4096);
        match self {
            Self::OpenAi => serde_json::to_writer(&mut body, &openai::Body::new(ask)),
            Self::Gemini => serde_json::to_writer(&mut body, &gemini::Body::new(ask)),
            Self::Anthropic => serde_json::to_writer(&mut body, &anthropic::Body::new(ask)),
        }?;
        Ok(body)
    }

    /// Takes in the data of one event.
    pub(super) fn read(self, data: &[u8], heard: &mut Heard) -> Result<(), Fault> {
        match self {
            Self::OpenAi => openai::read(data, heard),
            Self::Gemini => gemini::read(data, heard),
            Self::Anthropic => anthropic::read(data, heard),
        }
    }
}

/// A text that is not copied where it need not be.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// One event of an answer.
fn parse<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, Fault> {
    serde_json::from_slice(data).map_err(|error| Fault::transient(format!("the answer cannot be read: {error}")))
}

/// Figures are read for what they are worth: an answer is not lost over them.
fn counts<'a, T: Deserialize<'a> + Default>(usage: Option<&'a RawValue>) -> T {
    usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or_default()
}

/// The provider gives up within its answer.
fn gave_up(error: &RawValue) -> Fault {
    Fault::transient(format!("the provider gave up: {}", error.get()))
}
