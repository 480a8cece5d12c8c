//! What is run: an agent's configuration and one run's request, made into a command.
//!
//! Making a plan reads what the configuration refers to and looks for the program; it writes nothing and starts
//! nothing. [`prepare`] and [`collect`] do the work with files, before and after.

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

pub use attached::{Attached, attached};
pub(crate) use files::left_files;
pub use files::{Before, Collected, Ends, attach, collect, prepare};
use template::{Expanded, Values};

use crate::Failure;

/// Linux takes no longer argument or variable (MAX_ARG_STRLEN, with its NUL).
const MAX_ARGUMENT: usize = 128 * 1024 - 1;
/// What Linux takes of both together where the stack has its usual 8 MiB, less some room for whoever starts it.
const MAX_COMMAND: usize = 2 * 1024 * 1024 - 64 * 1024;

/// What every scratch folder has in it: for temporary files, and for what is kept of a run.
pub(crate) const FOLDERS: [&str; 2] = ["tmp", OUTPUT];
const OUTPUT: &str = "artifacts";

/// What one run asks for.
#[derive(Clone, Debug)]
pub struct Run {
    pub execution_id: Uuid,
    pub input: String,
    pub parameters: Map<String, Value>,
    pub working_directory: Option<PathBuf>,
    /// Taken as they are: nothing in them is looked up.
    pub envs: BTreeMap<String, String>,
    /// What came with it.
    pub files: Vec<Attached>,
    pub started: Timestamp,
}

/// The variables that every run of the agent has, or which of them has no value.
pub(crate) fn variables_of(
    agent: &Agent,
    ours: impl Fn(&str) -> Option<String>,
) -> Result<BTreeMap<String, String>, Failure> {
    Ok(environment::make(agent, &BTreeMap::new(), "", ours)?.variables)
}

/// A command and everything around it.
#[derive(Clone, PartialEq, Eq)]
pub struct Plan {
    /// Absolute, there, and executable.
    pub program: PathBuf,
    pub args: Vec<String>,
    /// All of it: nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// The scratch folder where no directory was asked for.
    pub cwd: PathBuf,
    pub input: Input,
    /// To be written before the program starts.
    pub input_file: Option<InputFile>,
    /// The same.
    pub files: Vec<Attached>,
    /// Read when the program has ended.
    pub output_file: Option<PathBuf>,
    /// What the program leaves here are artifacts.
    pub output_dir: PathBuf,
    pub scratch: PathBuf,
    /// For the redactor.
    pub secrets: Vec<String>,
    /// Parameters of the run that neither the command nor a JSON-RPC request takes.
    pub unused: Vec<String>,
}

/// How the program gets its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Written to it, then closed.
    Stdin(String),
    /// In [`Plan::input_file`], named in the arguments.
    File,
    Argument,
    /// Spoken with it: see [`crate::rpc`].
    JsonRpc,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    pub path: PathBuf,
    pub text: String,
}

impl Plan {
    /// `scratch` is a folder of this run alone; `variables` are our own.
    pub fn make(
        agent: &Agent,
        run: &Run,
        scratch: &Path,
        variables: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        let size = run.input.len() as u64;
        if size > agent.max_input_size {
            let most = agent.max_input_size;
            return Err(Failure::permanent(format!("the input has {size} bytes, max_input_size is {most}")));
        }
        let scratch = std::path::absolute(scratch).map_err(|error| {
            Failure::system(format!("the scratch folder {} is no path: {error}", scratch.display()))
        })?;
        let shown = text(&scratch)?;
        let environment = environment::make(agent, &run.envs, &format!("{shown}/tmp"), &variables)?;
        let mut env = environment.variables;
        let secrets = environment.secrets;
        // Is there where there is something in it.
        env.insert("ADJUTANT_FILES".to_owned(), format!("{shown}/{}", attached::FOLDER));
        env.insert("ADJUTANT_EXECUTION_ID".to_owned(), run.execution_id.to_string());
        let home = env.get("HOME").map(String::as_str);
        let path = env.get("PATH").map(String::as_str).unwrap_or_default();
        let program = program::find(&agent.executable_path, path, home)?;
        let cwd = directory(agent, run, home)?.unwrap_or_else(|| scratch.clone());
        let output_dir = scratch.join(OUTPUT);

        let named: Vec<&str> =
            agent.args.iter().chain(agent.cli_args.values()).flat_map(|arg| template::names(arg)).collect();
        let mut values = Values::of(&agent.parameters, &run.parameters);
        values.set("execution_id", run.execution_id.to_string());
        values.set("timestamp", run.started.strftime("%Y%m%dT%H%M%SZ").to_string());
        values.set("agent_id", agent.id.as_str());
        values.set("output_dir", format!("{shown}/artifacts"));
        values.set("files", format!("{shown}/{}", attached::FOLDER));
        values.set("scratch", shown);

        let mut input_path = None;
        if agent.input_pattern == InputPattern::File || named.contains(&"input_file") {
            let template = agent.input_file_template.as_deref().unwrap_or("input.txt");
            input_path = Some(file("input_file_template", template, &values, &[&scratch])?);
        }
        let mut output_file = None;
        let told = named.contains(&"output_file");
        if agent.output_pattern == OutputPattern::File || told {
            output_file = Some(match &agent.output_file_template {
                Some(template) if told => file("output_file_template", template, &values, &[&scratch])?,
                // Nobody tells the program, so the name is the program's own, in the directory where it works.
                Some(template) => file("output_file_template", template, &values, &[&cwd, &scratch])?,
                None if told => scratch.join("output.txt"),
                None => {
                    let message = "the output is to be read from a file, but nothing tells the program which";
                    let advice =
                        "put {{output_file}} into args, or say by output_file_template what it writes by itself";
                    return Err(Failure::permanent(format!("{message}: {advice}")));
                }
            });
        }
        let files = [("input_file", &input_path), ("output_file", &output_file)];
        for (name, path) in files {
            if let Some(path) = path {
                values.set(name, text(path)?.to_owned());
            }
        }
        values.set_input(&run.input);
        let args = arguments(agent, &named, &values)?;
        fits(&args, &env, agent)?;

        let input = match agent.input_pattern {
            InputPattern::Stdin => Input::Stdin(run.input.clone()),
            InputPattern::File => Input::File,
            InputPattern::Args => Input::Argument,
            InputPattern::JsonRpc => Input::JsonRpc,
        };
        let templates = [&agent.input_file_template, &agent.output_file_template];
        let taken: Vec<&str> = named
            .into_iter()
            .chain(templates.into_iter().flatten().flat_map(|template| template::names(template)))
            .collect();
        let unused = match input {
            Input::JsonRpc => Vec::new(),
            _ => run.parameters.keys().filter(|name| !taken.contains(&name.as_str())).cloned().collect(),
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

/// Variables are left out: they have secrets.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, args, cwd, .. } = self;
        f.debug_struct("Plan").field("program", program).field("args", &args.len()).field("cwd", cwd).finish()
    }
}

fn directory(agent: &Agent, run: &Run, home: Option<&str>) -> Result<Option<PathBuf>, Failure> {
    let asked = run.working_directory.as_deref().map(text).transpose()?;
    let Some(directory) = asked.or(agent.working_directory.as_deref()) else {
        return Ok(None);
    };
    let directory = program::absolute(directory, home)?;
    let shown = directory.display();
    match directory.metadata() {
        Err(error) => Err(Failure::permanent(format!("the working directory {shown} cannot be used: {error}"))),
        Ok(about) if !about.is_dir() => {
            Err(Failure::permanent(format!("the working directory {shown} is not a directory")))
        }
        Ok(_) => Ok(Some(directory)),
    }
}

/// The file a template names. A relative one is in the first of `places`, and in one of them whatever the values are;
/// an absolute one stays in the directory that the template itself begins with.
fn file(field: &str, template: &str, values: &Values<'_>, places: &[&Path]) -> Result<PathBuf, Failure> {
    let expanded = values.expand(field, template)?.text;
    if expanded.contains('\0') {
        return Err(Failure::permanent(format!("{field} becomes a name with a NUL in it")));
    }
    let fixed = template.split("{{").next().unwrap_or_default();
    let fixed = fixed.rfind('/').map_or("", |end| &fixed[..=end]);
    let absolute = template.starts_with('/').then(|| normal(Path::new(fixed)));
    let places: Vec<PathBuf> = match absolute {
        Some(folder) => vec![folder],
        None => places.iter().map(|place| normal(place)).collect(),
    };
    let path = normal(&places[0].join(&expanded));
    let inside = |place: &PathBuf| path.starts_with(place) && path != *place;
    if expanded.ends_with('/') || !places.iter().any(inside) {
        let place = places[0].display();
        return Err(Failure::permanent(format!("{field} becomes '{expanded}', which is no file inside {place}")));
    }
    Ok(path)
}

/// The path without `.` and `..`, by its letters alone.
fn normal(path: &Path) -> PathBuf {
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

fn arguments(agent: &Agent, named: &[&str], values: &Values<'_>) -> Result<Vec<String>, Failure> {
    let mut args = Vec::new();
    for (at, template) in agent.args.iter().enumerate() {
        let field = format!("args[{at}]");
        push(&mut args, &field, values.expand(&field, template)?)?;
    }
    for (key, template) in &agent.cli_args {
        args.push(if key.starts_with('-') { key.clone() } else { format!("--{key}") });
        if !template.is_empty() {
            let field = format!("cli_args.{key}");
            push(&mut args, &field, values.expand(&field, template)?)?;
        }
    }
    match agent.input_pattern {
        InputPattern::Args if !named.contains(&"input") => {
            push(&mut args, "input", values.expand("input", "{{input}}")?)?
        }
        InputPattern::File if !named.contains(&"input_file") => {
            args.push(values.expand("input", "{{input_file}}")?.text)
        }
        _ => {}
    }
    Ok(args)
}

/// Refuses what the program would take for one of its options, chosen by somebody who may only ask for a run.
fn push(args: &mut Vec<String>, field: &str, expanded: Expanded) -> Result<(), Failure> {
    let Expanded { text, foreign_start } = expanded;
    if text.contains('\0') {
        let message = format!("{field} has a NUL in it, which no argument can have");
        return Err(Failure::permanent(format!("{message}: let the agent take its input by stdin or file")));
    }
    let option = text.len() > 1 && text.starts_with('-') && text.parse::<f64>().is_err();
    if foreign_start && option && !args.iter().any(|arg| arg == "--") {
        let message = format!("{field} begins with '-' and could be taken for an option of the program");
        let advice = "put -- before it in args, write --option={{name}}, or use stdin or file";
        return Err(Failure::permanent(format!("{message}: {advice}")));
    }
    args.push(text);
    Ok(())
}

fn fits(args: &[String], env: &BTreeMap<String, String>, agent: &Agent) -> Result<(), Failure> {
    const ADVICE: &str = "let the agent take its input by stdin or file (input_pattern)";
    if let Some(long) = args.iter().find(|arg| arg.len() > MAX_ARGUMENT) {
        let message = format!("an argument of {} has {} bytes, the system takes {MAX_ARGUMENT}", agent.id, long.len());
        return Err(Failure::permanent(format!("{message}: {ADVICE}")));
    }
    if let Some((name, _)) = env.iter().find(|(name, value)| name.len() + 1 + value.len() > MAX_ARGUMENT) {
        return Err(Failure::permanent(format!(
            "the variable {name} is longer than the system takes ({MAX_ARGUMENT})"
        )));
    }
    // Each has a NUL and a pointer.
    let args: usize = args.iter().map(|arg| arg.len() + 9).sum();
    let env: usize = env.iter().map(|(name, value)| name.len() + value.len() + 10).sum();
    if args + env > MAX_COMMAND {
        let message = format!("arguments and variables have {} bytes, the system takes {MAX_COMMAND}", args + env);
        return Err(Failure::permanent(format!("{message}: {ADVICE}")));
    }
    Ok(())
}

/// Paths are put into arguments, which are text.
fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| Failure::permanent(format!("the path {} is not UTF-8", path.display())))
}
