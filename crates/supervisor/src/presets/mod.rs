//! Presets: the configuration of known command-line agents. A new agent needs only a new entry in `presets.json`.
//!
//! A preset fills only the fields that a draft leaves open. Its options follow the documentation of the agent about
//! unattended use.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use model::Invalid;
use model::agent::{AccessType, AgentDraft, ErrorPattern};
use model::execution::ErrorCategory;
use serde::Deserialize;

use crate::command::program::on_path;

/// The configuration of a known agent.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    pub id: String,
    pub title: String,
    pub about: String,
    /// The possible names of its program. The first is the usual one.
    pub executables: Vec<String>,
    /// Arguments that make the program print its version.
    pub version: Vec<String>,
    /// Environment variables that the agent reads. All are optional.
    pub variables: Vec<PresetVariable>,
    draft: AgentDraft,
    /// Differences for read-only access.
    #[serde(default)]
    read_only: AgentDraft,
    /// Differences for read-write access.
    #[serde(default)]
    read_write: AgentDraft,
}

/// An environment variable that an agent reads.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetVariable {
    pub name: String,
    pub about: String,
}

/// A preset with an installed program.
#[derive(Clone, Debug)]
pub struct InstalledPreset {
    pub preset: &'static Preset,
    pub program: PathBuf,
    /// The program is on the PATH.
    pub on_path: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetFile {
    /// Texts in the output of any agent that mean a permanent failure.
    permanent: Vec<String>,
    /// Texts in the output of any agent that mean a transient failure.
    transient: Vec<String>,
    presets: Vec<Preset>,
}

/// The embedded presets. A test ensures that they can be parsed.
static FILE: LazyLock<PresetFile> =
    LazyLock::new(|| serde_json::from_str(include_str!("presets.json")).unwrap_or_default());

/// Directories below the home directory where installers put programs.
const INSTALL_DIRS: &[&str] = &[
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

/// Returns all presets.
pub fn all() -> &'static [Preset] {
    &FILE.presets
}

/// Returns the preset with this id.
pub fn get(id: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.id == id)
}

/// Returns the presets with an installed program. Searches `path` and the usual directories below `home`.
pub fn detect(path: &str, home: Option<&Path>) -> Vec<InstalledPreset> {
    all().iter().filter_map(|preset| preset.find(path, home)).collect()
}

/// Returns the draft with its open fields filled from its preset. A draft without a preset is returned unchanged.
///
/// `variables` looks up variables of adjutant. The variables of the preset that are set are passed to the agent by
/// reference. Fails if the preset is unknown; the violation lists the known ones.
pub fn apply(draft: AgentDraft, variables: impl Fn(&str) -> Option<String>) -> Result<AgentDraft, Invalid> {
    let Some(id) = draft.preset.as_deref() else {
        return Ok(draft);
    };
    let Some(preset) = get(id) else {
        let known: Vec<_> = all().iter().map(|preset| preset.id.as_str()).collect();
        return Err(Invalid::one("preset", "one_of", format!("must be one of {}", known.join(", "))));
    };
    Ok(preset.fill(draft, &variables))
}

impl Preset {
    /// Returns the draft with its open fields filled from this preset. The access type of the draft, or otherwise of
    /// the preset, selects the differences; read-only is the default. A preset does not name a draft that has an id or
    /// a name, and does not set the patterns of a draft that has an agent type. The program is a plain name if it is on
    /// the PATH or not installed, and otherwise its full path. Variables of adjutant that the preset lists and that are
    /// not empty are passed as `env:NAME`, unless the draft sets them. `~/` in the write paths of the preset is
    /// replaced if `HOME` is set. The error patterns are those of all presets.
    fn fill(&'static self, draft: AgentDraft, variables: &impl Fn(&str) -> Option<String>) -> AgentDraft {
        let home = variables("HOME");
        let mut base = match draft.access_type.or(self.draft.access_type).unwrap_or(AccessType::ReadOnly) {
            AccessType::ReadOnly => self.read_only.clone(),
            AccessType::ReadWrite => self.read_write.clone(),
        }
        .with_preset(self.draft.clone());
        // An explicit id or name means a separate agent, so the preset does not name it.
        if draft.id.is_none() && draft.name.is_none() {
            base.id = Some(self.id.clone());
            base.name = Some(self.title.clone());
        }
        // An explicit type determines both patterns.
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
        for PresetVariable { name, .. } in &self.variables {
            if variables(name).is_some_and(|value| !value.is_empty()) {
                envs.insert(name.clone(), format!("env:{name}"));
            }
        }
        envs.extend(draft.envs.clone().unwrap_or_default());
        base.write_paths = base.write_paths.map(|paths| {
            let expand_home = |path: String| match (path.strip_prefix("~/"), &home) {
                (Some(rest), Some(home)) => format!("{home}/{rest}"),
                _ => path,
            };
            paths.into_iter().map(expand_home).collect()
        });
        base.error_patterns = Some(error_patterns());
        AgentDraft { envs: Some(envs), ..draft }.with_preset(base)
    }

    /// Returns the preset with the path of its program, or `None` if the program is not installed. Searches all its
    /// names in `path` first, then all in the usual directories below `home`. The first executable file counts.
    fn find(&'static self, path: &str, home: Option<&Path>) -> Option<InstalledPreset> {
        let find_on_path =
            || self.executables.iter().find_map(|name| on_path(name, path)).map(|program| (program, true));
        let find_installed = || {
            let dirs: Vec<String> =
                INSTALL_DIRS.iter().filter_map(|dir| home?.join(dir).to_str().map(str::to_owned)).collect();
            let dirs = dirs.join(":");
            self.executables.iter().find_map(|name| on_path(name, &dirs)).map(|program| (program, false))
        };
        let (program, on_path) = find_on_path().or_else(find_installed)?;
        Some(InstalledPreset { preset: self, program, on_path })
    }
}

/// Returns the texts that classify a failure of any agent: first the permanent ones, then the transient ones.
fn error_patterns() -> Vec<ErrorPattern> {
    let with_category = |texts: &'static [String], category| {
        texts.iter().map(move |text| ErrorPattern { text: text.clone(), category })
    };
    with_category(&FILE.permanent, ErrorCategory::Permanent)
        .chain(with_category(&FILE.transient, ErrorCategory::Transient))
        .collect()
}
