//! The program `adjutant`: reads the command line and the configuration, wires the parts together, runs one command.

mod cli;
mod client;
mod commands;
mod config;
mod exit;
mod logging;
mod output;
mod telemetry;
mod wire;

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches};

use cli::{Cli, Command};
use commands::serve::Role;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before anything else: this program is also the guardian of the agents it runs.
    if let Some(code) = supervisor::guardian::intercept() {
        return code;
    }
    // What people wrote down for themselves is not for other accounts of the machine.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    // Fails only where a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let matches = Cli::command().get_matches();
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli.global.token_given = matches.value_source("token") == Some(ValueSource::CommandLine);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("{error:#}"));
            ExitCode::from(exit::code_of(&error) as u8)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let Cli { global, command } = cli;
    match command {
        Command::Serve { listen, no_work } => {
            let role = if no_work { Role::Serve } else { Role::Both };
            commands::serve::run(&global, listen.as_deref(), role)
        }
        Command::Work { listen } => commands::serve::run(&global, listen.as_deref(), Role::Work),
        Command::Config(command) => commands::config::run(&global, &command),
        Command::Chat { message, conversation } => commands::chat::run(&global, message, conversation.as_deref()),
        Command::Run(order) => commands::run::run(&global, &order),
        Command::Executions(command) => commands::executions::run(&global, command),
        Command::Schedules(command) => commands::schedules::run(&global, command),
        Command::Mcp { user } => commands::mcp::run(&global, user.as_deref()),
        Command::Understand { text, now } => commands::understand::run(&global, now.as_deref(), text.as_deref()),
        Command::Completions { shell } => commands::manual::completions(shell),
        Command::Man { dir } => commands::manual::man(dir.as_deref()),
        Command::A2a(command) => wire::small_runtime()?.block_on(commands::a2a::run(&global, command)),
        Command::Doctor => wire::small_runtime()?.block_on(commands::doctor::run(&global)),
        command => wire::small_runtime()?.block_on(commands::client(&global, command)),
    }
}
