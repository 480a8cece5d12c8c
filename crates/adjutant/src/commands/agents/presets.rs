//! `adjutant agents detect` and `presets`: the presets of known agents, and which of them are installed. Needs no
//! server.

use serde_json::{Value, json};
use supervisor::presets;

use crate::cli::GlobalOptions;
use crate::output;

/// Prints all presets as ids (`quiet`, also with `--json`), as JSON, or as a table.
pub(super) fn list(global: &GlobalOptions, quiet: bool) -> anyhow::Result<()> {
    if quiet {
        return presets::all().iter().try_for_each(|preset| output::print_line(&preset.id));
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
        return output::print_line(&json!({"count": all.len(), "presets": all}).to_string());
    }
    let rows: Vec<_> = presets::all()
        .iter()
        .map(|preset| {
            vec![preset.id.clone(), preset.title.clone(), preset.executables.join(", "), preset.about.clone()]
        })
        .collect();
    output::print_table(&["PRESET", "NAME", "PROGRAM", "ABOUT"], &rows)
}

/// Prints the installed agents: as ids of presets (`quiet`, also with `--json`), as JSON, or as a table. JSON and table
/// contain the command to add each agent. Instead of an empty table, prints a note.
pub(super) fn detect(global: &GlobalOptions, quiet: bool) -> anyhow::Result<()> {
    let found = installed();
    if quiet {
        return found.iter().try_for_each(|found| output::print_line(&found.preset.id));
    }
    let add = |found: &presets::InstalledPreset| format!("adjutant agents add --preset {}", found.preset.id);
    if global.json {
        let list: Vec<Value> = found
            .iter()
            .map(|found| {
                let preset = found.preset;
                json!({"id": preset.id, "title": preset.title, "program": found.program, "add": add(found)})
            })
            .collect();
        return output::print_line(&json!({"count": list.len(), "presets": list}).to_string());
    }
    if found.is_empty() {
        let known = presets::all().len();
        output::note(&format!("none of the {known} known agents is installed; `adjutant agents presets` lists them"));
        return Ok(());
    }
    let rows: Vec<_> = found
        .iter()
        .map(|found| vec![found.preset.title.clone(), found.program.display().to_string(), add(found)])
        .collect();
    output::print_table(&["NAME", "PROGRAM", "TO ADD IT"], &rows)
}

/// Returns the presets with an installed program, found by `PATH` and `HOME`.
pub(in crate::commands) fn installed() -> Vec<presets::InstalledPreset> {
    let variable = |name: &str| std::env::var(name).ok();
    let home = variable("HOME").map(std::path::PathBuf::from);
    presets::detect(&variable("PATH").unwrap_or_default(), home.as_deref())
}
