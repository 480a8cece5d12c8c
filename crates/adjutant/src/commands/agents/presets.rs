//! `adjutant agents detect` and `presets`: what adjutant knows how to run, and what of it is here. Needs no server.

use serde_json::{Value, json};
use supervisor::presets;

use crate::cli::Global;
use crate::output;

pub(super) fn list(global: &Global, quiet: bool) -> anyhow::Result<()> {
    if quiet {
        return presets::all().iter().try_for_each(|preset| output::say(&preset.id));
    }
    if global.json {
        let all: Vec<Value> = presets::all()
            .iter()
            .map(|preset| {
                let variables = preset.variables.iter();
                let variables: Vec<_> =
                    variables.map(|variable| json!({"name": variable.name, "about": variable.about})).collect();
                json!({
                    "id": preset.id, "title": preset.title, "about": preset.about,
                    "executables": preset.executables, "variables": variables,
                })
            })
            .collect();
        return output::say(&json!({"count": all.len(), "presets": all}).to_string());
    }
    let rows: Vec<_> = presets::all()
        .iter()
        .map(|preset| {
            vec![preset.id.clone(), preset.title.clone(), preset.executables.join(", "), preset.about.clone()]
        })
        .collect();
    output::table(&["PRESET", "NAME", "PROGRAM", "ABOUT"], &rows)
}

pub(super) fn detect(global: &Global, quiet: bool) -> anyhow::Result<()> {
    let found = here();
    if quiet {
        return found.iter().try_for_each(|found| output::say(&found.preset.id));
    }
    let add = |found: &presets::Found| format!("adjutant agents add --preset {}", found.preset.id);
    if global.json {
        let list: Vec<Value> = found
            .iter()
            .map(|found| {
                let preset = found.preset;
                json!({"id": preset.id, "title": preset.title, "program": found.program, "add": add(found)})
            })
            .collect();
        return output::say(&json!({"count": list.len(), "presets": list}).to_string());
    }
    if found.is_empty() {
        let known = presets::all().len();
        output::note(&format!("none of the {known} agents is here that `adjutant agents presets` lists"));
        return Ok(());
    }
    let rows: Vec<_> = found
        .iter()
        .map(|found| vec![found.preset.title.clone(), found.program.display().to_string(), add(found)])
        .collect();
    output::table(&["NAME", "PROGRAM", "TO ADD IT"], &rows)
}

/// The presets whose programs are on this machine.
pub(in crate::commands) fn here() -> Vec<presets::Found> {
    let variable = |name: &str| std::env::var(name).ok();
    let home = variable("HOME").map(std::path::PathBuf::from);
    presets::detect(&variable("PATH").unwrap_or_default(), home.as_deref())
}
