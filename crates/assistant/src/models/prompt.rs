//! What an outside model is told: who it is, what was said, what it called and what came of it.

use genai::chat::{ChatMessage, ChatRequest, MessageContent, Tool as GenaiTool, ToolCall, ToolResponse};
use model::conversation::Role;
use tools::{Outcome, Spec, Specs};

use crate::{Prompt, Step};

/// The part that is the same for everyone, so that providers can keep it ready.
const INSTRUCTIONS: &str = include_str!("instructions.md");

/// What the model made of a step, as it wants to see it again.
pub(super) struct Kept {
    /// Which model it was.
    pub(super) by: String,
    pub(super) content: MessageContent,
    pub(super) reasoning: Option<String>,
}

pub(super) fn request(prompt: &Prompt<'_>, model: &str, tools: Vec<GenaiTool>) -> ChatRequest {
    let mut messages: Vec<ChatMessage> = Vec::with_capacity(prompt.context.history.len() + 2);
    for message in prompt.context.history.iter().filter(|message| !message.content.trim().is_empty()) {
        let content = message.content.as_str();
        messages.push(match message.role {
            Role::User => ChatMessage::user(content),
            Role::Assistant => ChatMessage::assistant(content),
            Role::System => ChatMessage::system(content),
        });
    }
    messages.push(ChatMessage::user(prompt.request.message.as_str()));
    for (n, step) in prompt.steps.iter().enumerate() {
        add_step(&mut messages, n, step, model, prompt.tools);
    }
    let request = ChatRequest::new(messages).with_system(system(prompt));
    if tools.is_empty() { request } else { request.with_tools(tools) }
}

/// How long the conversation is, for the log.
pub(super) fn length(prompt: &Prompt<'_>) -> usize {
    let history: usize = prompt.context.history.iter().map(|message| message.content.len()).sum();
    INSTRUCTIONS.len() + history + prompt.request.message.len()
}

fn system(prompt: &Prompt<'_>) -> String {
    let now = &prompt.request.now;
    let zone = now.time_zone().iana_name().unwrap_or("the person's time zone");
    format!("{INSTRUCTIONS}\nIt is {}, {} in {zone}.", now.strftime("%A, %Y-%m-%d"), now.strftime("%H:%M"))
}

fn add_step(messages: &mut Vec<ChatMessage>, n: usize, step: &Step, model: &str, specs: &Specs) {
    let kept = step.memo.as_ref().and_then(|memo| memo.0.downcast_ref::<Kept>()).filter(|kept| kept.by == model);
    let ids: Vec<String> = match kept {
        Some(kept) => {
            // Where a thought is signed it is there already, and must not be there twice.
            let reasoning = kept.reasoning.clone().filter(|_| !kept.content.contains_reasoning_content());
            messages.push(ChatMessage::assistant(kept.content.clone()).with_reasoning_content(reasoning));
            kept.content.tool_calls().into_iter().map(|call| call.call_id.clone()).collect()
        }
        // Another model's: its calls get ids of our own.
        None => {
            let ids: Vec<_> = (0..step.calls.len()).map(|call| format!("call_{n}_{call}")).collect();
            let calls = step.calls.iter().zip(&ids).map(|((call, _), id)| ToolCall {
                call_id: id.clone(),
                fn_name: call.name.clone(),
                fn_arguments: serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into()),
                thought_signatures: None,
            });
            messages.push(ChatMessage::assistant(MessageContent::from_tool_calls(calls.collect())));
            ids
        }
    };
    let answers = step.calls.iter().zip(ids).map(|((call, outcome), id)| {
        let spec = specs.iter().find(|spec| spec.name == call.name);
        ToolResponse::new(id, told(spec, outcome)).with_fn_name(call.name.clone())
    });
    messages.push(ChatMessage::tool(MessageContent::from_tool_responses(answers.collect())));
}

/// What came of a call, in the words of S3.
fn told(spec: Option<&Spec>, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(answer) => answer.text(spec.and_then(|spec| spec.tool)),
        Outcome::Held(_) => {
            "Not done yet: the person is asked to confirm it, and it is done when they do. Do not call it again."
                .to_owned()
        }
    }
}
