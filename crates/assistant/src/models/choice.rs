//! Which model is asked, and where, as the configuration says it.

use secrecy::SecretString;

#[derive(Clone, Debug)]
pub struct Choice {
    pub provider: Provider,
    /// As the provider calls it.
    pub name: String,
    /// `None`: the provider's own address.
    pub base_url: Option<String>,
    pub key: Option<SecretString>,
    /// Sent with every request, for servers that want more than a key.
    pub headers: Vec<(String, SecretString)>,
    /// `None`: what the provider thinks best.
    pub temperature: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// Built in.
    Offline,
    Gemini,
    OpenAi,
    Anthropic,
    /// Any server that speaks as OpenAI's does.
    OpenAiCompatible,
}

impl Provider {
    /// Every provider, in the order in which their keys are looked for.
    pub const ALL: [Self; 5] = [Self::Gemini, Self::OpenAi, Self::Anthropic, Self::OpenAiCompatible, Self::Offline];

    /// As in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Offline => "offline",
            Self::Gemini => "gemini",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::OpenAiCompatible => "openai-compatible",
        }
    }
}

impl Choice {
    pub fn offline() -> Self {
        Self::new(Provider::Offline, "offline")
    }

    /// With the provider's own address, without a key, as predictable as it can be.
    pub fn new(provider: Provider, name: impl Into<String>) -> Self {
        Self { provider, name: name.into(), base_url: None, key: None, headers: Vec::new(), temperature: Some(0.0) }
    }

    /// As in answers, logs and metrics: `openai:gpt-4o`.
    pub fn label(&self) -> String {
        match self.provider {
            Provider::Offline => "offline".to_owned(),
            provider => format!("{}:{}", provider.as_str(), self.name),
        }
    }
}
