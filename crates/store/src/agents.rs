//! Agents that were added over the API. They belong to the operator, not to a user.

use jiff::Timestamp;
use model::agent::Agent;

use crate::conn::{Conn, DbRow, Statement, args};
use crate::hints::Hint;
use crate::{Error, Result};

/// A stored agent with its times.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    pub agent: Agent,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Returns all agents, ordered by id. Fails with [`Error::Corrupt`] if the settings of one are invalid.
pub async fn all(conn: &mut Conn) -> Result<Vec<AgentRow>> {
    let sql = "SELECT settings, created_at, updated_at FROM agents ORDER BY id";
    conn.all((sql, [])).await?.iter().map(read).collect()
}

/// Returns an agent and locks it until the transaction ends. Fails with [`Error::NotFound`] if it does not exist.
pub async fn get_for_change(conn: &mut Conn, id: &str) -> Result<AgentRow> {
    let mut select = Statement::default();
    select.push("SELECT settings, created_at, updated_at FROM agents WHERE id = ").bind(id);
    if !conn.is_sqlite() {
        select.push(" FOR UPDATE");
    }
    read(&conn.first(select).await?.ok_or(Error::NotFound)?)
}

/// Adds an agent, returns it, and sends [`Hint::Agents`] after the commit. Fails with [`Error::AlreadyExists`] for `id`
/// or `name` if a stored agent has this id, or this name ignoring case. Does not check agents of the configuration
/// file.
pub async fn add(conn: &mut Conn, agent: &Agent, now: Timestamp) -> Result<AgentRow> {
    lock_agents(conn).await?;
    let sql = "INSERT INTO agents (id, name_key, settings, created_at, updated_at) VALUES ($1, $2, $3, $4, $4) \
               ON CONFLICT DO NOTHING";
    let added = conn.run((sql, args![agent.id.as_str(), agent.name.to_lowercase(), settings(agent)?, now])).await?;
    if added == 0 {
        return Err(duplicate_error(conn, agent).await);
    }
    conn.add_hint(Hint::Agents);
    Ok(AgentRow { agent: agent.clone(), created_at: now, updated_at: now })
}

/// Replaces the agent with the same id, returns it, and sends [`Hint::Agents`] after the commit. Its creation time
/// stays. Fails with [`Error::AlreadyExists`] if another stored agent has the name, ignoring case, and with
/// [`Error::NotFound`] if the agent does not exist.
pub async fn replace(conn: &mut Conn, agent: &Agent, now: Timestamp) -> Result<AgentRow> {
    lock_agents(conn).await?;
    let other = "SELECT id FROM agents WHERE name_key = $1 AND id <> $2";
    let id = agent.id.as_str();
    let name = agent.name.to_lowercase();
    if conn.first((other, args![name.as_str(), id])).await?.is_some() {
        return Err(Error::AlreadyExists("name"));
    }
    let sql = "UPDATE agents SET name_key = $2, settings = $3, updated_at = $4 WHERE id = $1 RETURNING created_at";
    let row = conn.first((sql, args![id, name, settings(agent)?, now])).await?.ok_or(Error::NotFound)?;
    conn.add_hint(Hint::Agents);
    Ok(AgentRow { agent: agent.clone(), created_at: row.time(0)?, updated_at: now })
}

/// Removes an agent. Its executions stay, also queued ones. Fails with [`Error::NotFound`] if it does not exist.
pub async fn remove(conn: &mut Conn, id: &str) -> Result<()> {
    conn.add_hint(Hint::Agents);
    match conn.run(("DELETE FROM agents WHERE id = $1", args![id])).await? {
        0 => Err(Error::NotFound),
        _ => Ok(()),
    }
}

/// Locks all agents until the transaction ends, so that a free name stays free.
async fn lock_agents(conn: &mut Conn) -> Result<()> {
    if !conn.is_sqlite() {
        // An arbitrary number that no other lock of this database uses.
        conn.batch("SELECT pg_advisory_xact_lock(7717000002)").await?;
    }
    Ok(())
}

/// Returns the error for an agent with a duplicate id or name.
async fn duplicate_error(conn: &mut Conn, agent: &Agent) -> Error {
    match conn.first(("SELECT id FROM agents WHERE id = $1", args![agent.id.as_str()])).await {
        Ok(Some(_)) => Error::AlreadyExists("id"),
        Ok(None) => Error::AlreadyExists("name"),
        Err(error) => error,
    }
}

fn settings(agent: &Agent) -> Result<String> {
    serde_json::to_string(agent).map_err(|error| Error::Corrupt(error.to_string()))
}

/// Reads the settings and the times of an agent. Fails with [`Error::Corrupt`] if a column is invalid.
fn read(row: &DbRow) -> Result<AgentRow> {
    Ok(AgentRow {
        agent: row.parsed(0, |json| serde_json::from_str(json))?,
        created_at: row.time(1)?,
        updated_at: row.time(2)?,
    })
}
