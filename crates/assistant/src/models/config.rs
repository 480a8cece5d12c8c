//! The configuration of a model.

use secrecy::SecretString;

/// A model with its provider, address and credentials.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    pub provider: ModelProvider,
    /// The name that the provider uses.
    pub name: String,
    /// `None` uses the default address of the provider.
    pub base_url: Option<String>,
    pub api_key: Option<SecretString>,
    /// Additional headers of every request.
    pub headers: Vec<(String, SecretString)>,
    /// `None` uses the default of the provider.
    pub temperature: Option<f64>,
}

/// The provider of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelProvider {
    /// Built in.
    Offline,
    Gemini,
    OpenAi,
    Anthropic,
    /// A server with the API of OpenAI.
    OpenAiCompatible,
}

impl ModelProvider {
    /// All providers, in the order in which their keys are looked up.
    pub const ALL: [Self; 5] = [Self::Gemini, Self::OpenAi, Self::Anthropic, Self::OpenAiCompatible, Self::Offline];

    /// Returns the name in the configuration, such as `openai-compatible`.
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

impl ModelConfig {
    /// Returns the configuration of the built-in model.
    pub fn offline() -> Self {
        Self::new(ModelProvider::Offline, "offline")
    }

    /// Creates a configuration with the default address, no key and temperature 0.
    pub fn new(provider: ModelProvider, name: impl Into<String>) -> Self {
        Self { provider, name: name.into(), base_url: None, api_key: None, headers: Vec::new(), temperature: Some(0.0) }
    }

    /// Returns the name in responses, logs and metrics, such as `openai:gpt-4o`.
    pub fn label(&self) -> String {
        match self.provider {
            ModelProvider::Offline => "offline".to_owned(),
            provider => format!("{}:{}", provider.as_str(), self.name),
        }
    }
}
