//! The command line of `permissions`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// Show permissions
    #[command(visible_alias = "ls")]
    List {
        /// Print only the ids
        #[arg(long, short)]
        quiet: bool,
        /// Maximum number of permissions
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Cursor of the page to show, with --json
        #[arg(long, value_name = "CURSOR", requires = "json")]
        cursor: Option<String>,
    },
    /// Remove permissions, so that the assistant asks again
    Rm {
        /// Beginning or end of an id
        #[arg(required = true, value_name = "PERMISSION")]
        permissions: Vec<String>,
    },
}
