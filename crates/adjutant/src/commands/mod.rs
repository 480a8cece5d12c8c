//! The commands, one module each.

pub(crate) mod a2a;
mod agents;
mod audit;
mod backup;
pub(crate) mod chat;
pub(crate) mod config;
mod data;
pub(crate) mod doctor;
pub(crate) mod executions;
mod listing;
pub(crate) mod manual;
pub(crate) mod mcp;
mod notifications;
mod permissions;
pub(crate) mod recover;
mod reload_record;
mod reminders;
pub(crate) mod run;
pub(crate) mod schedules;
pub(crate) mod serve;
mod stop;
mod stop_all;
mod tasks;
mod token;
pub(crate) mod understand;
mod watch;

use anyhow::anyhow;

use crate::cli::{Command, GlobalOptions};
use crate::client::Client;
use crate::config::{Config, ConfigMistake};
use crate::exit::{ExitError, ExitStatus};

/// Runs one of the commands `agents`, `tasks`, `reminders`, `notifications`, `permissions`, `token`, `backup`, `restore`, `export`,
/// `import`, `erase`, `stop`, `stop-all`, `resume-all` and `audit`. They use the server, or the data directory if no server runs. Has no effect for the commands
/// that `main` runs itself. Fails if the command fails.
pub(crate) async fn run_with_client(global: &GlobalOptions, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Agents(command) => agents::run(global, command).await,
        Command::Tasks(command) => tasks::run(global, command).await,
        Command::Reminders(command) => reminders::run(global, command).await,
        Command::Notifications(args) => notifications::run(global, &args).await,
        Command::Permissions(command) => permissions::run(global, command).await,
        Command::Token(command) => token::run(global, command).await,
        Command::Backup { file } => backup::backup(&Client::connect(global).await?, file).await,
        Command::Restore { file } => backup::restore(global, &file).await,
        Command::Export { file } => data::export(&Client::connect(global).await?, file).await,
        Command::Import { file } => data::import(global, &file).await,
        Command::Erase => data::erase(global).await,
        Command::Stop { drain, timeout } => stop::run(global, drain, timeout).await,
        Command::StopAll { reason } => stop_all::stop(global, reason).await,
        Command::ResumeAll => stop_all::resume(global).await,
        Command::Audit { since, action, quiet, limit, cursor } => {
            audit::list(global, since, action, limit, cursor, quiet).await
        }
        // `main` runs the remaining commands, which need no client.
        _ => Ok(()),
    }
}

/// Joins words with spaces, so that a text needs no quotes. Returns `None` for no words.
pub(crate) fn joined(words: &[String]) -> Option<String> {
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns a text with further words.
pub(crate) fn with_words(first: Option<String>, words: &[String]) -> Option<String> {
    first.map(|first| {
        std::iter::once(first.as_str()).chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
    })
}

/// Reads the configuration. Fails with one error for all mistakes.
pub(crate) fn load_config(global: &GlobalOptions, listen: Option<&str>) -> anyhow::Result<Config> {
    Config::load(global, listen).map_err(|mistakes| config_error(&mistakes))
}

/// Returns one usage error with a line for each mistake.
pub(crate) fn config_error(mistakes: &[ConfigMistake]) -> anyhow::Error {
    let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    anyhow!(ExitError::new(ExitStatus::Usage, format!("the configuration is not valid:\n  {}", lines.join("\n  "))))
}
