//! Cards and tasks for people.

use ::a2a::client::Client;
use ::a2a::types::{Message, Part, PartContent, Role, Task};

use super::word;
use crate::output;

pub(super) fn card(client: &Client) -> anyhow::Result<()> {
    let card = client.card();
    line("name", &card.name)?;
    line("version", &card.version)?;
    line("description", &card.description)?;
    if let Some(provider) = &card.provider {
        line("provider", &format!("{} {}", provider.organization, provider.url))?;
    }
    line("spoken to", &format!("{} {} at {}", client.binding().as_str(), client.version().as_str(), client.url()))?;
    for interface in &card.supported_interfaces {
        let binding = &interface.protocol_binding;
        let version = &interface.protocol_version;
        line("offers", &format!("{binding} {version} at {}", interface.url))?;
    }
    let can = &card.capabilities;
    let abilities = [
        ("streaming", can.streaming),
        ("push notifications", can.push_notifications),
        ("extended card", can.extended_agent_card),
    ];
    let abilities: Vec<_> = abilities.iter().filter(|(_, can)| *can == Some(true)).map(|(name, _)| *name).collect();
    line("can", &abilities.join(", "))?;
    line("takes", &card.default_input_modes.join(", "))?;
    line("gives", &card.default_output_modes.join(", "))?;
    let mut schemes: Vec<_> = card.security_schemes.iter().flat_map(|schemes| schemes.keys().cloned()).collect();
    schemes.sort();
    line("asks for", &schemes.join(", "))?;
    for skill in &card.skills {
        line("skill", &format!("{}: {}", skill.name, skill.description))?;
    }
    Ok(())
}

pub(super) fn task(task: &Task) -> anyhow::Result<()> {
    line("task", &task.id)?;
    line("context", &task.context_id)?;
    line("state", &word(&task.status.state))?;
    line("since", &since(task))?;
    for message in task.history.iter().flatten() {
        let who = if message.role == Role::Agent { "agent said" } else { "you said" };
        line(who, &words(message))?;
    }
    if let Some(message) = &task.status.message {
        line("says", &words(message))?;
    }
    for artifact in task.artifacts.iter().flatten() {
        line("artifact", artifact.name.as_deref().unwrap_or(&artifact.artifact_id))?;
        let text = content(&artifact.parts);
        output::put(text.as_bytes())?;
        if !text.is_empty() && !text.ends_with('\n') {
            output::put(b"\n")?;
        }
    }
    Ok(())
}

pub(super) fn row(task: &Task) -> Vec<String> {
    vec![task.id.clone(), word(&task.status.state), since(task), task.context_id.clone()]
}

fn since(task: &Task) -> String {
    let at = serde_json::to_value(task.status.timestamp).unwrap_or_default();
    at.as_str().unwrap_or_default().to_owned()
}

/// On one line.
pub(super) fn words(message: &Message) -> String {
    content(&message.parts).trim().replace('\n', "\\n")
}

/// What a terminal can show of it: texts as they are, everything else as a line.
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

/// Control characters of others do nothing to the terminal of ours.
fn line(name: &str, value: &str) -> anyhow::Result<()> {
    let clean: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.trim().is_empty() { Ok(()) } else { output::say(&format!("{name:<13}{clean}")) }
}
