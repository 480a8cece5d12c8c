//! `adjutant permissions`: list, rm.

use api::permissions::{ListPermissions, Permission};

use super::listing::{self, Named, limit_param, local_time, named, short_id};
use crate::cli::{GlobalOptions, PermissionsCommand};
use crate::client::Client;
use crate::output;

const PATH: &str = "/api/permissions";

/// Connects and runs one subcommand. Fails if the connection or a request fails, or if a name matches no permission or
/// several.
pub(crate) async fn run(global: &GlobalOptions, command: PermissionsCommand) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    match command {
        PermissionsCommand::List { quiet, limit, cursor } => {
            let list = ListPermissions { limit: limit.map(limit_param), cursor };
            let found = listing::items_to_show(client, PATH, list, usize::MAX, quiet, "no permissions").await?;
            let Some(permissions) = found else { return Ok(()) };
            let rows: Vec<_> = permissions.iter().map(row).collect();
            output::print_table(&["ID", "SERVER", "TOOL", "SINCE"], &rows)
        }
        PermissionsCommand::Rm { permissions } => remove(client, &permissions, global.yes).await,
    }
}

/// Returns the row of a permission in a table: short id, server, tool, time.
fn row(permission: &Permission) -> Vec<String> {
    let Permission { id, server, tool, created_at } = permission;
    vec![short_id(*id), server.clone(), tool.clone(), local_time(*created_at)]
}

named!("permission": Permission, |it| it.id, format!("{} of {}", it.tool, it.server));

/// Removes permissions, selected by the beginning or end of an id, after a confirmation, unless `yes` is set. Fails and
/// removes none if a name cannot be resolved or the removal is not confirmed. Stops at the first request that fails.
/// Otherwise prints one line, or nothing with `--json`.
async fn remove(client: &Client, names: &[String], yes: bool) -> anyhow::Result<()> {
    let known = listing::all_items(client, PATH, ListPermissions::default(), usize::MAX).await?;
    let resolve = async |name: &str| listing::select_one(name, &known, &[Named::has_id, Named::has_part]).cloned();
    let found = listing::resolve_each(names, resolve).await?;
    let removed = match found.as_slice() {
        [one] => format!("the permission for {} of {}", one.tool, one.server),
        several => format!("{} permissions", several.len()),
    };
    output::confirm(&format!("Remove {removed}?"), yes)?;
    for permission in &found {
        client.delete(&format!("{PATH}/{}", permission.id)).await?;
    }
    if client.json { Ok(()) } else { output::print_line(&format!("Removed {removed}")) }
}
