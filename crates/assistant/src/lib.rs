//! The assistant turns a message of a user into tool calls and a reply.
//!
//! [`turn::TurnEngine`] runs one turn, from the message to the stored exchange. [`AgentRunner`] is the loop inside a
//! turn. It queries the model, calls the requested tools and enforces the limits: the user's identity, the number of
//! calls, the time, confirmations, and the format of the reply. The model is a parameter ([`ChatModel`]). The built-in
//! model ([`offline::OfflineModel`]) needs no network. No state survives a turn, except in the store.

mod chat_model;
mod confirm;
mod context;
mod event;
mod log;
mod mentions;
pub mod models;
pub mod offline;
mod own_words;
mod report;
mod response_filter;
mod run;
pub mod turn;
mod wording;

pub use chat_model::{
    ChatModel, ModelChain, ModelError, ModelHealth, ModelUsage, Prompt, ProviderState, ReplyDelta, RequestedCall,
    ToolStep,
};
pub use context::{AgentContext, TurnRequest};
pub use event::{ErrorType, ToolCallStatus, TurnEvent};
pub use report::{AgentReport, agent_report_record, renew_confirmation};
pub use run::{AgentResult, AgentRunner, ModelCallRecord, TurnLimits};
use wording::{stopped, system_error, timed_out};
