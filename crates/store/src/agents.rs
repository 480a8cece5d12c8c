//! Agents that were added over the API. They belong to the operator, not to a user.

use jiff::Timestamp;
use model::agent::Agent;

use crate::conn::{Conn, Row, args};
use crate::hints::Hint;
use crate::{Error, Result};

/// An agent and when it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    pub agent: Agent,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// All of them, by id.
pub async fn all(conn: &mut Conn) -> Result<Vec<Kept>> {
    let sql = "SELECT settings, created_at, updated_at FROM agents ORDER BY id";
    conn.all((sql, [])).await?.iter().map(read).collect()
}

/// Adds an agent; its id and its name must be new.
pub async fn add(conn: &mut Conn, agent: &Agent, now: Timestamp) -> Result<Kept> {
    alone(conn).await?;
    let sql = "INSERT INTO agents (id, name_key, settings, created_at, updated_at) VALUES ($1, $2, $3, $4, $4) \
               ON CONFLICT DO NOTHING";
    let done = conn.run((sql, args![agent.id.as_str(), agent.name.to_lowercase(), settings(agent)?, now])).await?;
    if done == 0 {
        return Err(taken(conn, agent).await);
    }
    conn.hint(Hint::Agents);
    Ok(Kept { agent: agent.clone(), created_at: now, updated_at: now })
}

/// Writes an agent over the one with its id.
pub async fn replace(conn: &mut Conn, agent: &Agent, now: Timestamp) -> Result<Kept> {
    alone(conn).await?;
    let other = "SELECT id FROM agents WHERE name_key = $1 AND id <> $2";
    let id = agent.id.as_str();
    let name = agent.name.to_lowercase();
    if conn.first((other, args![name.as_str(), id])).await?.is_some() {
        return Err(Error::Taken("name"));
    }
    let sql = "UPDATE agents SET name_key = $2, settings = $3, updated_at = $4 WHERE id = $1 RETURNING created_at";
    let row = conn.first((sql, args![id, name, settings(agent)?, now])).await?.ok_or(Error::NotFound)?;
    conn.hint(Hint::Agents);
    Ok(Kept { agent: agent.clone(), created_at: row.time(0)?, updated_at: now })
}

/// Removes an agent; what it did stays on record.
pub async fn remove(conn: &mut Conn, id: &str) -> Result<()> {
    conn.hint(Hint::Agents);
    match conn.run(("DELETE FROM agents WHERE id = $1", args![id])).await? {
        0 => Err(Error::NotFound),
        _ => Ok(()),
    }
}

/// Until the transaction ends nobody else writes agents: a name that is free now could be taken by then.
async fn alone(conn: &mut Conn) -> Result<()> {
    if !conn.is_sqlite() {
        // Any number will do that nothing else in the database uses.
        conn.batch("SELECT pg_advisory_xact_lock(7717000002)").await?;
    }
    Ok(())
}

async fn taken(conn: &mut Conn, agent: &Agent) -> Error {
    match conn.first(("SELECT id FROM agents WHERE id = $1", args![agent.id.as_str()])).await {
        Ok(Some(_)) => Error::Taken("id"),
        Ok(None) => Error::Taken("name"),
        Err(error) => error,
    }
}

fn settings(agent: &Agent) -> Result<String> {
    serde_json::to_string(agent).map_err(|error| Error::Corrupt(error.to_string()))
}

fn read(row: &Row) -> Result<Kept> {
    Ok(Kept {
        agent: row.parsed(0, |json| serde_json::from_str(json))?,
        created_at: row.time(1)?,
        updated_at: row.time(2)?,
    })
}
