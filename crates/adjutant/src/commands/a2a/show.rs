//! Prints cards and tasks of A2A agents.

use ::a2a::client::A2aClient;
use ::a2a::types::{Message, Part, PartContent, Role, Task};

use super::state_name;
use crate::output;

/// Prints the card of an agent, one property per line, the interface in use, and one line for each interface and skill.
/// Empty properties are left out. Control characters become spaces.
pub(super) fn card(client: &A2aClient) -> anyhow::Result<()> {
    let card = client.card();
    line("name", &card.name)?;
    line("version", &card.version)?;
    line("description", &card.description)?;
    if let Some(provider) = &card.provider {
        line("provider", &format!("{} {}", provider.organization, provider.url))?;
    }
    line("connected", &format!("{} {} at {}", client.binding().as_str(), client.version().as_str(), client.url()))?;
    for interface in &card.supported_interfaces {
        let binding = &interface.protocol_binding;
        let version = &interface.protocol_version;
        line("offers", &format!("{binding} {version} at {}", interface.url))?;
    }
    let capabilities = &card.capabilities;
    let supported = [
        ("streaming", capabilities.streaming),
        ("push notifications", capabilities.push_notifications),
        ("extended card", capabilities.extended_agent_card),
    ];
    let supported: Vec<_> =
        supported.iter().filter(|(_, is_supported)| *is_supported == Some(true)).map(|(name, _)| *name).collect();
    line("supports", &supported.join(", "))?;
    line("input", &card.default_input_modes.join(", "))?;
    line("output", &card.default_output_modes.join(", "))?;
    let mut schemes: Vec<_> = card.security_schemes.iter().flat_map(|schemes| schemes.keys().cloned()).collect();
    schemes.sort();
    line("auth", &schemes.join(", "))?;
    for skill in &card.skills {
        line("skill", &format!("{}: {}", skill.name, skill.description))?;
    }
    Ok(())
}

/// Prints the properties of a task, its history, the message of its status and its artifacts. Each property and message
/// is on one line; blank ones are left out. Line breaks of messages are shown as `\n`, other control characters as
/// spaces. Each artifact follows a line with its name, or its id without a name; a blank name has no line. Its text is
/// printed unchanged, other parts as in [`content`]: a file only with its name and size. A missing line break at the
/// end is added.
pub(super) fn task(task: &Task) -> anyhow::Result<()> {
    line("task", &task.id)?;
    line("context", &task.context_id)?;
    line("state", &state_name(&task.status.state))?;
    line("since", &since(task))?;
    for message in task.history.iter().flatten() {
        let sender = if message.role == Role::Agent { "agent" } else { "you" };
        line(sender, &one_line(message))?;
    }
    if let Some(message) = &task.status.message {
        line("message", &one_line(message))?;
    }
    for artifact in task.artifacts.iter().flatten() {
        line("artifact", artifact.name.as_deref().unwrap_or(&artifact.artifact_id))?;
        let text = content(&artifact.parts);
        output::print(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            output::print(b"\n")?;
        }
    }
    Ok(())
}

/// Returns the row of a task in a table.
pub(super) fn row(task: &Task) -> Vec<String> {
    vec![task.id.clone(), state_name(&task.status.state), since(task), task.context_id.clone()]
}

/// Returns the time of the last status, empty if the agent sent none.
fn since(task: &Task) -> String {
    let at = serde_json::to_value(task.status.timestamp).unwrap_or_default();
    at.as_str().unwrap_or_default().to_owned()
}

/// Returns the text of a message on one line: line breaks are replaced with `\n`.
pub(super) fn one_line(message: &Message) -> String {
    content(&message.parts).trim().replace('\n', "\\n")
}

/// Returns parts as text. Texts are joined without a separator. Every other part is on its own line: the URL, the JSON,
/// or the name and size of a file (`[file, 3 bytes]` without a name).
pub(super) fn content(parts: &[Part]) -> String {
    let mut all = String::new();
    for part in parts {
        let shown = match &part.content {
            PartContent::Text(text) => {
                all.push_str(text);
                continue;
            }
            PartContent::Url(url) => url.clone(),
            PartContent::Data(data) => data.to_string(),
            PartContent::Raw(bytes) => {
                let name = part.filename.as_deref().unwrap_or("file");
                format!("[{name}, {} bytes]", bytes.len())
            }
        };
        if !all.is_empty() && !all.ends_with('\n') {
            all.push('\n');
        }
        all.push_str(&shown);
        all.push('\n');
    }
    all
}

/// Prints a name and a value, or nothing if the value is blank. Control characters are replaced with spaces, so that an
/// agent cannot affect the terminal.
fn line(name: &str, value: &str) -> anyhow::Result<()> {
    let clean: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.trim().is_empty() { Ok(()) } else { output::print_line(&format!("{name:<13}{clean}")) }
}
