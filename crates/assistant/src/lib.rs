//! The assistant: a person's sentence in, tools called, a friendly answer out.
//!
//! [`turn::TurnEngine`] runs one turn from a message to the stored exchange. [`AgentRunner`] is the loop inside it: it asks the model, calls what the model wants called, and holds it to the limits: who the
//! user is, how many calls, how long, what must be confirmed, what an answer may look like. Which model answers is a
//! parameter ([`ChatModel`]); the built-in one ([`offline::Offline`]) needs no network. Nothing is kept between runs.

mod chat_model;
mod confirm;
mod context;
mod event;
mod log;
pub mod models;
pub mod offline;
mod report;
mod run;
mod screen;
mod shown;
pub mod turn;
mod wording;

pub use chat_model::{Call, ChatModel, Delta, Health, Memo, ModelError, Models, Prompt, Step, Usage};
pub use context::{AgentContext, Request};
pub use event::{ErrorType, Status, TurnEvent};
pub use report::{Report, still_pending};
pub use run::{AgentResult, AgentRunner, Asked, Limits};
use wording::{stopped, timed_out, trouble};
