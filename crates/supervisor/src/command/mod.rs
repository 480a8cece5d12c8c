//! Builds the command of a run from the configuration of the agent and the request.
//!
//! Making a plan reads the referenced variables and files and finds the program. It writes nothing and starts nothing.
//! [`prepare_files`] and [`collect_files`] handle the files before and after the run.

mod attached;
mod environment;
mod files;
pub(crate) mod program;
mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use jiff::Timestamp;
use model::agent::{Agent, InputPattern, OutputPattern};
use serde_json::{Map, Value};
use uuid::Uuid;

pub use attached::{AttachedFile, attached_files};
pub(crate) use files::has_files_to_collect;
pub use files::{CollectedFiles, FileExcerpt, FilesBefore, collect_files, prepare_files, write_attached_files};
use template::{Expanded, Values};

use crate::RunFailure;

/// The maximum length of one argument or variable on Linux (`MAX_ARG_STRLEN`, without the NUL), in bytes.
const MAX_ARGUMENT_BYTES: usize = 128 * 1024 - 1;
/// The maximum total length of arguments and variables on Linux with the default stack of 8 MiB, less a reserve for the
/// guardian, in bytes.
const MAX_COMMAND_BYTES: usize = 2 * 1024 * 1024 - 64 * 1024;

/// The directories in every scratch directory: for temporary files and for artifacts.
pub(crate) const SCRATCH_DIRS: [&str; 2] = ["tmp", ARTIFACTS_DIR];
const ARTIFACTS_DIR: &str = "artifacts";

/// The input of one run.
#[derive(Clone, Debug)]
pub struct CommandRequest {
    pub execution_id: Uuid,
    pub input: String,
    pub parameters: Map<String, Value>,
    pub working_directory: Option<PathBuf>,
    /// Used literally: references are not resolved.
    pub envs: BTreeMap<String, String>,
    pub files: Vec<AttachedFile>,
    pub started_at: Timestamp,
}

/// Returns the variables that every run of the agent gets. `TMPDIR` is empty. Fails if a referenced variable or file is
/// missing.
pub(crate) fn agent_variables(
    agent: &Agent,
    own: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, RunFailure> {
    Ok(environment::build(agent, &BTreeMap::new(), "", own)?.variables)
}

/// A command with its environment, its input and its files.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandPlan {
    /// The absolute path of an existing, executable file.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The complete environment: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// The working directory. It is the scratch directory if none is configured.
    pub cwd: PathBuf,
    pub input: InputDelivery,
    /// Written before the program starts.
    pub input_file: Option<InputFile>,
    /// Written before the program starts.
    pub files: Vec<AttachedFile>,
    /// Read after the program has ended.
    pub output_file: Option<PathBuf>,
    /// Files in this directory are artifacts.
    pub output_dir: PathBuf,
    pub scratch: PathBuf,
    /// Values that the redactor removes from the output.
    pub secrets: Vec<String>,
    /// Parameters of the run that neither the command nor a JSON-RPC request uses.
    pub unused: Vec<String>,
}

/// The method that passes the input to the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputDelivery {
    /// Written to standard input, which is then closed.
    Stdin(String),
    /// Written to [`CommandPlan::input_file`]. Its path is an argument.
    File,
    Argument,
    /// Sent as a JSON-RPC message. See [`crate::rpc`].
    JsonRpc,
}

/// A file with the input of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    pub path: PathBuf,
    pub text: String,
}

impl CommandPlan {
    /// Returns the plan of a run. `scratch` is a directory that only this run uses. `variables` looks up variables of
    /// adjutant. The input file is `input.txt` and the output file `output.txt` in the scratch directory, unless a
    /// template is set. A relative output file that the program does not get as an argument is below the working
    /// directory.
    ///
    /// Fails if the input exceeds `max_input_size`, a variable or reference is invalid, the program or the working
    /// directory cannot be used, or a template has an unknown placeholder or leaves its directory. Also fails if a path
    /// is not UTF-8, an argument is not allowed, the command is too long, or the output is a file and neither `args`
    /// nor `output_file_template` names it. All these failures are permanent. An invalid scratch directory is a system
    /// failure.
    pub fn make(
        agent: &Agent,
        run: &CommandRequest,
        scratch: &Path,
        variables: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, RunFailure> {
        let size = run.input.len() as u64;
        if size > agent.max_input_size {
            let limit = agent.max_input_size;
            return Err(RunFailure::permanent(format!("the input has {size} bytes; max_input_size is {limit}")));
        }
        let scratch = std::path::absolute(scratch).map_err(|error| {
            RunFailure::system(format!("the scratch directory {} is not a valid path: {error}", scratch.display()))
        })?;
        let scratch_text = utf8(&scratch)?;
        let environment = environment::build(agent, &run.envs, &format!("{scratch_text}/tmp"), &variables)?;
        let mut env = environment.variables;
        let secrets = environment.secrets;
        // The directory exists only if files are attached.
        env.insert("ADJUTANT_FILES".to_owned(), format!("{scratch_text}/{}", attached::ATTACHED_DIR));
        env.insert("ADJUTANT_EXECUTION_ID".to_owned(), run.execution_id.to_string());
        let home = env.get("HOME").map(String::as_str);
        let path = env.get("PATH").map(String::as_str).unwrap_or_default();
        let program = program::find(&agent.executable_path, path, home)?;
        let cwd = directory(agent, run, home)?.unwrap_or_else(|| scratch.clone());
        let output_dir = scratch.join(ARTIFACTS_DIR);

        let placeholders: Vec<&str> =
            agent.args.iter().chain(agent.cli_args.values()).flat_map(|arg| template::names(arg)).collect();
        let mut values = Values::new(&agent.parameters, &run.parameters);
        values.set("execution_id", run.execution_id.to_string());
        values.set("timestamp", run.started_at.strftime("%Y%m%dT%H%M%SZ").to_string());
        values.set("agent_id", agent.id.as_str());
        values.set("output_dir", format!("{scratch_text}/artifacts"));
        values.set("files", format!("{scratch_text}/{}", attached::ATTACHED_DIR));
        values.set("scratch", scratch_text);

        let mut input_path = None;
        if agent.input_pattern == InputPattern::File || placeholders.contains(&"input_file") {
            let template = agent.input_file_template.as_deref().unwrap_or("input.txt");
            input_path = Some(file("input_file_template", template, &values, &[&scratch])?);
        }
        let mut output_file = None;
        let is_passed = placeholders.contains(&"output_file");
        if agent.output_pattern == OutputPattern::File || is_passed {
            output_file = Some(match &agent.output_file_template {
                Some(template) if is_passed => file("output_file_template", template, &values, &[&scratch])?,
                // The program chooses the name itself and writes the file to its working directory.
                Some(template) => file("output_file_template", template, &values, &[&cwd, &scratch])?,
                None if is_passed => scratch.join("output.txt"),
                None => {
                    let message = "the output is read from a file, but the program does not get its path";
                    let advice =
                        "put {{output_file}} into args, or set output_file_template to the file that it writes";
                    return Err(RunFailure::permanent(format!("{message}: {advice}")));
                }
            });
        }
        let files = [("input_file", &input_path), ("output_file", &output_file)];
        for (name, path) in files {
            if let Some(path) = path {
                values.set(name, utf8(path)?.to_owned());
            }
        }
        values.set_input(&run.input);
        let args = arguments(agent, &placeholders, &values)?;
        check_size(&args, &env, agent)?;

        let input = match agent.input_pattern {
            InputPattern::Stdin => InputDelivery::Stdin(run.input.clone()),
            InputPattern::File => InputDelivery::File,
            InputPattern::Args => InputDelivery::Argument,
            InputPattern::JsonRpc => InputDelivery::JsonRpc,
        };
        let templates = [&agent.input_file_template, &agent.output_file_template];
        let used: Vec<&str> = placeholders
            .into_iter()
            .chain(templates.into_iter().flatten().flat_map(|template| template::names(template)))
            .collect();
        let unused = match input {
            InputDelivery::JsonRpc => Vec::new(),
            _ => run.parameters.keys().filter(|name| !used.contains(&name.as_str())).cloned().collect(),
        };
        let input_file = input_path.map(|path| InputFile { path, text: run.input.clone() });
        let files = run.files.clone();
        Ok(Self {
            program,
            args,
            env,
            cwd,
            input,
            input_file,
            files,
            output_file,
            output_dir,
            scratch,
            secrets,
            unused,
        })
    }
}

/// Leaves out the variables and the arguments, because they may contain secrets.
impl fmt::Debug for CommandPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, args, cwd, .. } = self;
        f.debug_struct("CommandPlan").field("program", program).field("args", &args.len()).field("cwd", cwd).finish()
    }
}

/// Returns the working directory of the request, or otherwise of the agent, as an absolute path. `~/` stands for
/// `home`. Returns `None` if neither is set. Fails if it is not UTF-8, does not exist or is not a directory.
fn directory(agent: &Agent, run: &CommandRequest, home: Option<&str>) -> Result<Option<PathBuf>, RunFailure> {
    let requested = run.working_directory.as_deref().map(utf8).transpose()?;
    let Some(directory) = requested.or(agent.working_directory.as_deref()) else {
        return Ok(None);
    };
    let directory = program::absolute(directory, home)?;
    let shown = directory.display();
    match directory.metadata() {
        Err(error) => Err(RunFailure::permanent(format!("the working directory {shown} cannot be used: {error}"))),
        Ok(metadata) if !metadata.is_dir() => {
            Err(RunFailure::permanent(format!("the working directory {shown} is not a directory")))
        }
        Ok(_) => Ok(Some(directory)),
    }
}

/// Returns the path that a template expands to, without `.` and `..`. `field` names the setting in errors.
///
/// A relative path is joined to the first directory of `roots` and must be inside one of them. An absolute path must be
/// inside the directory that the fixed beginning of the template names. Fails permanently otherwise, and if the path
/// contains a NUL byte or ends with a slash, or the template is invalid. Links are not resolved.
fn file(field: &str, template: &str, values: &Values<'_>, roots: &[&Path]) -> Result<PathBuf, RunFailure> {
    let expanded = values.expand(field, template)?.text;
    if expanded.contains('\0') {
        return Err(RunFailure::permanent(format!("{field} expands to a path with a NUL byte")));
    }
    let fixed = template.split("{{").next().unwrap_or_default();
    let fixed = fixed.rfind('/').map_or("", |end| &fixed[..=end]);
    let absolute = template.starts_with('/').then(|| normalize(Path::new(fixed)));
    let roots: Vec<PathBuf> = match absolute {
        Some(root) => vec![root],
        None => roots.iter().map(|root| normalize(root)).collect(),
    };
    let path = normalize(&roots[0].join(&expanded));
    let is_inside = |root: &PathBuf| path.starts_with(root) && path != *root;
    if expanded.ends_with('/') || !roots.iter().any(is_inside) {
        let root = roots[0].display();
        return Err(RunFailure::permanent(format!(
            "{field} expands to '{expanded}', which is not a file inside {root}"
        )));
    }
    Ok(path)
}

/// Returns the path without `.` and `..`. Each `..` removes the component before it. Does not access the file system.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Returns the arguments in order: `args`, `cli_args`, then the input or the path of the input file if the input
/// pattern needs it and no placeholder contains it. A key of `cli_args` gets `--` in front unless it begins with `-`,
/// and its value is the next argument; an empty value is left out. Fails if a template is invalid or [`push_argument`]
/// rejects an argument.
fn arguments(agent: &Agent, placeholders: &[&str], values: &Values<'_>) -> Result<Vec<String>, RunFailure> {
    let mut args = Vec::new();
    for (at, template) in agent.args.iter().enumerate() {
        let field = format!("args[{at}]");
        push_argument(&mut args, &field, values.expand(&field, template)?)?;
    }
    for (key, template) in &agent.cli_args {
        args.push(if key.starts_with('-') { key.clone() } else { format!("--{key}") });
        if !template.is_empty() {
            let field = format!("cli_args.{key}");
            push_argument(&mut args, &field, values.expand(&field, template)?)?;
        }
    }
    match agent.input_pattern {
        InputPattern::Args if !placeholders.contains(&"input") => {
            push_argument(&mut args, "input", values.expand("input", "{{input}}")?)?
        }
        InputPattern::File if !placeholders.contains(&"input_file") => {
            args.push(values.expand("input", "{{input_file}}")?.text)
        }
        _ => {}
    }
    Ok(args)
}

/// Adds an argument. Fails permanently if it contains a NUL byte. Also fails if its beginning comes from the request
/// and it begins with `-`, because a caller must not be able to add options. A single `-`, numbers, and arguments after
/// `--` are allowed. `field` names the setting in errors.
fn push_argument(args: &mut Vec<String>, field: &str, expanded: Expanded) -> Result<(), RunFailure> {
    let Expanded { text, starts_with_request } = expanded;
    if text.contains('\0') {
        let message = format!("{field} contains a NUL byte, which is not possible in an argument");
        return Err(RunFailure::permanent(format!("{message}: let the agent take its input by stdin or file")));
    }
    let is_option = text.len() > 1 && text.starts_with('-') && !is_negative_number(&text);
    if starts_with_request && is_option && !args.iter().any(|arg| arg == "--") {
        let message = format!("{field} begins with '-' and could be taken for an option of the program");
        let advice = "put -- before it in args, write --option={{name}}, or use stdin or file";
        return Err(RunFailure::permanent(format!("{message}: {advice}")));
    }
    args.push(text);
    Ok(())
}

/// Returns true for a negative number in digits. `-inf` and `-nan` are options to most programs.
fn is_negative_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or_default();
    digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') && digits.parse::<f64>().is_ok()
}

/// Fails permanently if an argument or a variable with its name exceeds [`MAX_ARGUMENT_BYTES`], or if all of them
/// together exceed [`MAX_COMMAND_BYTES`]. The message names the agent or the variable.
fn check_size(args: &[String], env: &BTreeMap<String, String>, agent: &Agent) -> Result<(), RunFailure> {
    const ADVICE: &str = "let the agent take its input by stdin or file (input_pattern)";
    if let Some(long) = args.iter().find(|arg| arg.len() > MAX_ARGUMENT_BYTES) {
        let message = format!(
            "an argument of {} has {} bytes; the limit of the system is {MAX_ARGUMENT_BYTES}",
            agent.id,
            long.len()
        );
        return Err(RunFailure::permanent(format!("{message}: {ADVICE}")));
    }
    if let Some((name, _)) = env.iter().find(|(name, value)| name.len() + 1 + value.len() > MAX_ARGUMENT_BYTES) {
        return Err(RunFailure::permanent(format!(
            "the variable {name} is longer than {MAX_ARGUMENT_BYTES} bytes, the limit of the system"
        )));
    }
    // Each one also needs a NUL byte and a pointer of 8 bytes.
    let args: usize = args.iter().map(|arg| arg.len() + 9).sum();
    let env: usize = env.iter().map(|(name, value)| name.len() + value.len() + 10).sum();
    if args + env > MAX_COMMAND_BYTES {
        let message = format!(
            "arguments and variables have {} bytes; the limit of the system is {MAX_COMMAND_BYTES}",
            args + env
        );
        return Err(RunFailure::permanent(format!("{message}: {ADVICE}")));
    }
    Ok(())
}

/// Returns the path as text, because arguments are text. Fails if the path is not UTF-8.
fn utf8(path: &Path) -> Result<&str, RunFailure> {
    path.to_str().ok_or_else(|| RunFailure::permanent(format!("the path {} is not UTF-8", path.display())))
}
