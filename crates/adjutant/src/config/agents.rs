//! `[[agents]]`: agents as the file has them, in the fields of the API. Only the file: a variable cannot name one of several.

use model::agent::{Agent, Draft};
use serde_json::Value;

use super::entries::{About, Entry};
use super::read::Reader;
use super::{Mistake, Variables, a2a};

pub(crate) const SECTION: &str = "agents";

/// In messages: what one is, and what is wrong where they are none.
pub(crate) const ABOUT: About =
    About { section: SECTION, one: "an agent", wrong: "every agent is an [[agents]] of its own, with an id" };

/// The agents, each well written; whether their programs are there is another question.
pub(crate) fn read(reader: &mut Reader<'_>, with_auth: bool) -> Vec<Agent> {
    let layers = reader.layers;
    let mut agents: Vec<Agent> = Vec::new();
    for entry in &layers.agents {
        let agent = match one(entry, reader.variables) {
            Ok(agent) => agent,
            Err(mistakes) => {
                reader.mistakes.extend(mistakes);
                continue;
            }
        };
        for (field, taken) in [
            ("id", agents.iter().any(|other| other.id == agent.id)),
            ("name", agents.iter().any(|other| other.name.eq_ignore_ascii_case(&agent.name))),
        ] {
            if taken {
                reader.mistake_at(entry.origin_of(field), format!("{}.{field} is taken by another agent", entry.title));
                break;
            }
        }
        let title = format!("{}.a2a", entry.title);
        a2a::usable(reader, &title, &entry.origin_of("a2a"), &agent.a2a, with_auth);
        agents.push(agent);
    }
    agents
}

fn one(entry: &Entry, variables: &Variables) -> Result<Agent, Vec<Mistake>> {
    let draft = model::json::from_value::<Draft>(Value::Object(entry.fields.clone()));
    let agent =
        draft.and_then(|draft| supervisor::check::written(draft, &|name| variables.get(name).map(str::to_owned)));
    agent.map_err(|invalid| entry.mistakes(invalid))
}
