//! The wire protocols of providers: URLs, headers, request bodies, and the interpretation of events.
//!
//! The functions are stateless. The reply is in a [`ReplyAccumulator`], the content of a request in a
//! [`ModelTranscript`].

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

use super::accumulator::ReplyAccumulator;
use super::provider_error::ProviderError;
use super::transcript::ModelTranscript;
use super::{ModelConfig, ModelProvider};

/// The wire protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProviderWire {
    /// Chat completions, of OpenAI and of compatible servers.
    OpenAi,
    Gemini,
    Anthropic,
}

/// A tool in a request.
pub(super) struct OfferedTool<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) schema: Value,
}

/// The content of a request.
pub(super) struct WireRequest<'a> {
    pub(super) model: &'a str,
    pub(super) temperature: Option<f64>,
    /// The output of [`ProviderWire::tools`].
    pub(super) tools: Option<&'a RawValue>,
    pub(super) transcript: &'a ModelTranscript<'a>,
}

impl ProviderWire {
    /// Returns the protocol of a provider, or `None` for the built-in model.
    pub(super) fn for_provider(provider: ModelProvider) -> Option<Self> {
        match provider {
            ModelProvider::OpenAi | ModelProvider::OpenAiCompatible => Some(Self::OpenAi),
            ModelProvider::Gemini => Some(Self::Gemini),
            ModelProvider::Anthropic => Some(Self::Anthropic),
            ModelProvider::Offline => None,
        }
    }

    /// Returns the URL of the requests: the base URL, or the default of the provider, and the path of the API. Adds the
    /// version to a base URL of Anthropic that does not end with `/v1`, and to a base URL of Gemini without a path. The
    /// URL of Gemini also contains the name of the model and `alt=sse`. Fails if the configured base URL is invalid.
    pub(super) fn url(self, config: &ModelConfig) -> Result<Url, String> {
        let default = match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Anthropic => "https://api.anthropic.com/v1",
        };
        let base = config.base_url.as_deref().unwrap_or(default);
        let mut url = Url::parse(base).map_err(|error| format!("invalid base URL '{base}': {error}"))?;
        let path = url.path().trim_end_matches('/').to_owned();
        // The base URLs of Anthropic and Gemini usually have no version.
        let path = match self {
            Self::OpenAi => format!("{path}/chat/completions"),
            Self::Anthropic if path.ends_with("/v1") => format!("{path}/messages"),
            Self::Anthropic => format!("{path}/v1/messages"),
            Self::Gemini => {
                let version = if path.is_empty() { "/v1beta" } else { "" };
                format!("{path}{version}/models/{}:streamGenerateContent", config.name)
            }
        };
        url.set_path(&path);
        if self == Self::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Ok(url)
    }

    /// Returns the headers of all requests: the content type, the API version of Anthropic, the configured headers and
    /// the key. The key replaces a configured header of the same name, and configured headers replace the first two.
    /// Configured values and the key are marked as sensitive. Fails if a header has an invalid name or value.
    pub(super) fn headers(self, config: &ModelConfig) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self == Self::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::API_VERSION));
        }
        let configured =
            config.headers.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value.expose_secret())));
        let key = config.api_key.as_ref().map(|key| match self {
            Self::OpenAi => (AUTHORIZATION.as_str(), Cow::Owned(format!("Bearer {}", key.expose_secret()))),
            Self::Gemini => ("x-goog-api-key", Cow::Borrowed(key.expose_secret())),
            Self::Anthropic => ("x-api-key", Cow::Borrowed(key.expose_secret())),
        });
        for (name, value) in configured.chain(key) {
            let invalid = || format!("the header '{name}' has a name or value with characters that are not allowed");
            let mut value = HeaderValue::from_str(&value).map_err(|_| invalid())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?, value);
        }
        Ok(headers)
    }

    /// Serializes tools. The result is reused for many requests. Fails if the serialization fails.
    pub(super) fn tools(self, tools: &[OfferedTool<'_>]) -> serde_json::Result<Box<RawValue>> {
        match self {
            Self::OpenAi => openai::tools(tools),
            Self::Gemini => gemini::tools(tools),
            Self::Anthropic => anthropic::tools(tools),
        }
    }

    /// Serializes the body of a request in the format of the provider, as JSON. Fails if the serialization fails.
    pub(super) fn write(self, request: &WireRequest<'_>) -> serde_json::Result<Vec<u8>> {
        let mut body = Vec::with_capacity(request.tools.map_or(0, |tools| tools.get().len()) + 4096);
        match self {
            Self::OpenAi => serde_json::to_writer(&mut body, &openai::OpenAiRequest::new(request)),
            Self::Gemini => serde_json::to_writer(&mut body, &gemini::GeminiRequest::new(request)),
            Self::Anthropic => serde_json::to_writer(&mut body, &anthropic::AnthropicRequest::new(request)),
        }?;
        Ok(body)
    }

    /// Adds the data of one event to the reply. Fails if the data is invalid or reports an error.
    pub(super) fn read(self, data: &[u8], reply: &mut ReplyAccumulator) -> Result<(), ProviderError> {
        match self {
            Self::OpenAi => openai::read(data, reply),
            Self::Gemini => gemini::read(data, reply),
            Self::Anthropic => anthropic::read(data, reply),
        }
    }
}

/// A string that borrows from the input if possible.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Parses the data of an event. Fails with a transient error if the data is invalid.
fn parse_event<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Result<T, ProviderError> {
    serde_json::from_slice(data)
        .map_err(|error| ProviderError::transient(format!("invalid event in the answer: {error}")))
}

/// Parses token counts. Invalid counts become 0, because they must not fail the reply.
fn parse_usage<'a, T: Deserialize<'a> + Default>(usage: Option<&'a RawValue>) -> T {
    usage.and_then(|usage| serde_json::from_str(usage.get()).ok()).unwrap_or_default()
}

/// Creates the failure of an error event inside an answer. It is transient.
fn error_event(error: &RawValue) -> ProviderError {
    ProviderError::transient(format!("the provider reported an error: {}", error.get()))
}
