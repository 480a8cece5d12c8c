//! One file a command, named like it.

pub(crate) mod a2a;
mod agents;
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
mod reminders;
pub(crate) mod run;
pub(crate) mod schedules;
pub(crate) mod serve;
mod tasks;
mod token;
pub(crate) mod understand;
mod watch;

use anyhow::anyhow;

use crate::cli::{Command, Global};
use crate::client::Client;
use crate::config::{Config, Mistake};
use crate::exit::{Code, Exit};

/// Runs a command that speaks to a server, or to the data directory where none runs.
pub(crate) async fn client(global: &Global, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Agents(command) => agents::run(global, command).await,
        Command::Tasks(command) => tasks::run(global, command).await,
        Command::Reminders(command) => reminders::run(global, command).await,
        Command::Notifications(wanted) => notifications::run(global, &wanted).await,
        Command::Token(command) => token::run(global, command).await,
        Command::Backup { file } => backup::backup(&Client::connect(global).await?, file).await,
        Command::Restore { file } => backup::restore(global, &file).await,
        Command::Export { file } => data::export(&Client::connect(global).await?, file).await,
        Command::Import { file } => data::import(global, &file).await,
        Command::Erase => data::erase(global).await,
        // The others are run by `main`, without a client.
        _ => Ok(()),
    }
}

/// The configuration, or all its mistakes as one complaint.
pub(crate) fn load(global: &Global, listen: Option<&str>) -> anyhow::Result<Config> {
    Config::load(global, listen).map_err(|mistakes| not_valid(&mistakes))
}

/// Makes one complaint of all mistakes.
pub(crate) fn not_valid(mistakes: &[Mistake]) -> anyhow::Error {
    let lines: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    anyhow!(Exit::new(Code::Usage, format!("the configuration is not valid:\n  {}", lines.join("\n  "))))
}
