//! Presets: how common command-line agents are run, as data. A new agent is a new entry in `presets.json`, no code.
//!
//! A preset only fills what a draft leaves open. What it says of an agent's options is what that agent's own
//! documentation says of running it with nobody there.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use model::Invalid;
use model::agent::{AccessType, Draft, ErrorPattern};
use model::execution::Category;
use serde::Deserialize;

use crate::command::program::on_path;

/// One kind of agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    pub id: String,
    pub title: String,
    pub about: String,
    /// The names its program may have; the first is the usual one.
    pub executables: Vec<String>,
    /// Arguments with which it only says its version.
    pub version: Vec<String>,
    /// What it takes from the environment. None of them is needed by everyone.
    pub variables: Vec<Variable>,
    draft: Draft,
    /// What is different where it only reads.
    #[serde(default)]
    read_only: Draft,
    /// What is different where it may write.
    #[serde(default)]
    read_write: Draft,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    pub name: String,
    pub about: String,
}

/// A preset whose program is here.
#[derive(Clone, Debug)]
pub struct Found {
    pub preset: &'static Preset,
    pub program: PathBuf,
    /// Whether its name alone finds it.
    pub on_path: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What any of them writes when trying again is of no use, and when it is.
    permanent: Vec<String>,
    transient: Vec<String>,
    presets: Vec<Preset>,
}

/// A test reads it first, so it is never empty.
static FILE: LazyLock<File> = LazyLock::new(|| serde_json::from_str(include_str!("presets.json")).unwrap_or_default());

/// Where programs are put that are not on everybody's PATH.
const FOLDERS: &[&str] = &[
    ".local/bin",
    "bin",
    ".npm-global/bin",
    ".claude/local",
    ".opencode/bin",
    ".bun/bin",
    ".cargo/bin",
    ".volta/bin",
    ".local/share/pnpm",
];

pub fn all() -> &'static [Preset] {
    &FILE.presets
}

pub fn preset(id: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.id == id)
}

/// The presets whose programs are here, by the PATH and by the folders below `home` where installers put them.
pub fn detect(path: &str, home: Option<&Path>) -> Vec<Found> {
    all().iter().filter_map(|preset| preset.find(path, home)).collect()
}

/// The draft with what its preset says about everything it leaves open; as it is where it names none. `variables` are
/// our own: those the preset knows and we have are handed on by reference.
pub fn apply(draft: Draft, variables: impl Fn(&str) -> Option<String>) -> Result<Draft, Invalid> {
    let Some(id) = draft.preset.as_deref() else {
        return Ok(draft);
    };
    let Some(preset) = preset(id) else {
        let known: Vec<_> = all().iter().map(|preset| preset.id.as_str()).collect();
        return Err(Invalid::one("preset", "one_of", format!("must be one of {}", known.join(", "))));
    };
    Ok(preset.fill(draft, &variables))
}

impl Preset {
    fn fill(&'static self, draft: Draft, variables: &impl Fn(&str) -> Option<String>) -> Draft {
        let home = variables("HOME");
        let mut base = match draft.access_type.or(self.draft.access_type).unwrap_or(AccessType::ReadOnly) {
            AccessType::ReadOnly => self.read_only.clone(),
            AccessType::ReadWrite => self.read_write.clone(),
        }
        .over(self.draft.clone());
        // Whoever names it otherwise has another one in mind.
        if draft.id.is_none() && draft.name.is_none() {
            base.id = Some(self.id.clone());
            base.name = Some(self.title.clone());
        }
        // A type stands for both patterns.
        if draft.agent_type.is_some() {
            (base.input_pattern, base.output_pattern) = (None, None);
        }
        base.description = Some(self.about.clone());
        let found = self.find(&variables("PATH").unwrap_or_default(), home.as_deref().map(Path::new));
        base.executable_path = match found {
            Some(found) if !found.on_path => found.program.to_str().map(str::to_owned),
            Some(found) => found.program.file_name().and_then(|name| name.to_str()).map(str::to_owned),
            None => self.executables.first().cloned(),
        };
        let mut envs: BTreeMap<String, String> = base.envs.take().unwrap_or_default();
        for Variable { name, .. } in &self.variables {
            if variables(name).is_some_and(|value| !value.is_empty()) {
                envs.insert(name.clone(), format!("env:{name}"));
            }
        }
        envs.extend(draft.envs.clone().unwrap_or_default());
        base.write_paths = base.write_paths.map(|paths| {
            let at_home = |path: String| match (path.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => format!("{home}/{rest}"),
                _ => path,
            };
            paths.into_iter().map(at_home).collect()
        });
        base.error_patterns = Some(patterns());
        Draft { envs: Some(envs), ..draft }.over(base)
    }

    fn find(&'static self, path: &str, home: Option<&Path>) -> Option<Found> {
        let named = || self.executables.iter().find_map(|name| on_path(name, path)).map(|program| (program, true));
        let elsewhere = || {
            let folders: Vec<String> =
                FOLDERS.iter().filter_map(|folder| home?.join(folder).to_str().map(str::to_owned)).collect();
            let folders = folders.join(":");
            self.executables.iter().find_map(|name| on_path(name, &folders)).map(|program| (program, false))
        };
        let (program, on_path) = named().or_else(elsewhere)?;
        Some(Found { preset: self, program, on_path })
    }
}

fn patterns() -> Vec<ErrorPattern> {
    let of = |texts: &'static [String], category| {
        texts.iter().map(move |text| ErrorPattern { text: text.clone(), category })
    };
    of(&FILE.permanent, Category::Permanent).chain(of(&FILE.transient, Category::Transient)).collect()
}
