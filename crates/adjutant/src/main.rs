//! The program `adjutant`: parses the command line and runs one command.

mod cli;
mod client;
mod commands;
mod config;
mod exit;
mod holder;
mod logging;
mod output;
mod target;
mod telemetry;
mod wire;

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches};

use cli::{Cli, Command};
use commands::chat::ConversationStart;
use commands::joined;
use commands::serve::NodeRole;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs one command and prints its error. Exits with the code for that error. Clap exits itself for `--help`,
/// `--version` and an invalid command line. Started as a guardian, the process only does the work of the guardian.
///
/// Files that the process creates are readable by their owner only. Installs the TLS provider of the process.
fn main() -> ExitCode {
    // Must come first: this executable is also the guardian process of its agents.
    if let Some(code) = supervisor::guardian::intercept() {
        return code;
    }
    // Agents run as the same user. They must not read the secrets in the environment and the memory of this process.
    if let Err(error) = supervisor::guardian::protect_memory() {
        output::print_error(&format!("the memory of this process could not be protected: {error}"));
    }
    // Files that adjutant creates are readable by their owner only.
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
    // Fails only if a provider is already installed, which is not an error.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let matches = Cli::command().get_matches();
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    cli.global.token_given = matches.value_source("token") == Some(ValueSource::CommandLine);
    let is_json = cli.global.json;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if is_json && !output::has_printed() {
                let problem = serde_json::json!({
                    "type": "about:blank",
                    "title": "The command failed",
                    "detail": exit::message(&error),
                    "exit_code": exit::exit_status(&error) as u8,
                });
                // Without standard output, the message on standard error remains.
                let _ = output::print_line(&problem.to_string());
            }
            output::print_error(&exit::message(&error));
            ExitCode::from(exit::exit_status(&error) as u8)
        }
    }
}

/// Runs the command. Commands that handle signals or block start their own runtime; the other ones run in
/// [`wire::command_runtime`]. Fails if the command fails.
fn run(cli: Cli) -> anyhow::Result<()> {
    let Cli { global, command } = cli;
    match command {
        Command::Serve { listen, no_work } => {
            let role = if no_work { NodeRole::Serve } else { NodeRole::Both };
            commands::serve::run(&global, listen.as_deref(), role)
        }
        Command::Work { listen } => commands::serve::run(&global, listen.as_deref(), NodeRole::Work),
        Command::Config(command) => commands::config::run(&global, &command),
        Command::Chat { message, conversation, new, resume } => {
            commands::chat::run(&global, joined(&message), conversation, ConversationStart::of(new, resume))
        }
        Command::Run(args) => commands::run::run(&global, &args),
        Command::Executions(command) => commands::executions::run(&global, command),
        Command::Schedules(command) => commands::schedules::run(&global, command),
        Command::Mcp { user } => commands::mcp::run(&global, user.as_deref()),
        Command::Understand { text, now } => {
            commands::understand::run(&global, now.as_deref(), joined(&text).as_deref())
        }
        Command::Completions { shell } => commands::manual::completions(shell),
        Command::Man { dir } => commands::manual::man(dir.as_deref()),
        Command::A2a(command) => wire::command_runtime()?.block_on(commands::a2a::run(&global, command)),
        Command::Recover { output } => wire::command_runtime()?.block_on(commands::recover::run(&global, output)),
        Command::Doctor => wire::command_runtime()?.block_on(commands::doctor::run(&global)),
        command => wire::command_runtime()?.block_on(commands::run_with_client(&global, command)),
    }
}
