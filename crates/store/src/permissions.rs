//! Tools of external servers that need no confirmation for their owner.

use model::UserId;
use model::permission::Permission;
use uuid::Uuid;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::page::{Cursor, Page};
use crate::{Error, Result};

const COLUMNS: &str = "id, server, tool, created_at";

/// Adds a permission. Returns false and changes nothing if the owner has one for this tool already.
pub async fn add(conn: &mut Conn, owner: UserId, permission: &Permission) -> Result<bool> {
    let insert = "INSERT INTO permissions (owner, id, server, tool, created_at) VALUES ($1, $2, $3, $4, $5) \
                  ON CONFLICT (owner, server, tool) DO NOTHING";
    let Permission { id, server, tool, created_at } = permission;
    Ok(conn.run((insert, args![owner, *id, server.as_str(), tool.as_str(), *created_at])).await? == 1)
}

/// Returns whether the owner has a permission for this tool of this server.
pub async fn is_allowed(conn: &mut Conn, owner: UserId, server: &str, tool: &str) -> Result<bool> {
    let select = "SELECT id FROM permissions WHERE owner = $1 AND server = $2 AND tool = $3";
    Ok(conn.first((select, args![owner, server, tool])).await?.is_some())
}

/// Returns one page of the permissions of the owner, oldest first.
pub async fn list(conn: &mut Conn, owner: UserId, after: Option<&Cursor>, limit: i64) -> Result<Page<Permission>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM permissions WHERE owner = ").bind(owner);
    if let Some(cursor) = after {
        select.push(" AND id > ").bind(cursor.id.as_str());
    }
    select.push(" ORDER BY id LIMIT ").bind(limit + 1);
    let permissions = conn.all(select).await?.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::from_rows(permissions, limit, |permission| Cursor { sort: 0, id: permission.id.to_string() }))
}

/// Returns a permission. Fails with [`Error::NotFound`] if the owner has none with this id.
pub async fn get(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<Permission> {
    let select = "SELECT id, server, tool, created_at FROM permissions WHERE owner = $1 AND id = $2";
    let row = conn.first((select, args![owner, id])).await?;
    row.as_ref().map(read).transpose()?.ok_or(Error::NotFound)
}

/// Removes a permission and returns it. Fails with [`Error::NotFound`] if the owner has none with this id.
pub async fn remove(conn: &mut Conn, owner: UserId, id: Uuid) -> Result<Permission> {
    let removed = get(conn, owner, id).await?;
    conn.run(("DELETE FROM permissions WHERE owner = $1 AND id = $2", args![owner, id])).await?;
    Ok(removed)
}

fn read(row: &DbRow) -> Result<Permission> {
    Ok(Permission {
        id: row.parsed(0, Uuid::try_parse)?,
        server: row.text(1)?,
        tool: row.text(2)?,
        created_at: row.time(3)?,
    })
}
