//! Conversations and their messages, each under its owner.

use jiff::Timestamp;
use model::UserId;
use model::conversation::{Conversation, Id, Message, Role, title};
use uuid::Uuid;

use crate::conn::{Conn, Row, Statement, args};
use crate::page::{Cursor, Page};
use crate::tasks::containing;
use crate::{Error, Result};

const COLUMNS: &str = "id, title, created_at, updated_at, message_count";

/// Adds messages at the end, starting the conversation where there is none under this id. An id that is another
/// user's is [`Error::NotFound`].
pub async fn append(
    conn: &mut Conn,
    owner: UserId,
    id: &Id,
    messages: &[Message],
    now: Timestamp,
) -> Result<Conversation> {
    let title = messages.first().map(|message| title(&message.content)).unwrap_or_default();
    let added = i64::try_from(messages.len()).unwrap_or_default();
    let upsert = "INSERT INTO conversations (id, owner, title, search, created_at, updated_at, message_count) \
                  VALUES ($1, $2, $3, $4, $5, $5, $6) \
                  ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, \
                  message_count = conversations.message_count + excluded.message_count \
                  WHERE conversations.owner = excluded.owner \
                  RETURNING id, title, created_at, updated_at, message_count";
    let values = args![id, owner, title.as_str(), title.to_lowercase(), now, added];
    let row = conn.first((upsert, values)).await?.ok_or(Error::NotFound)?;
    let conversation = read(&row)?;
    let first = conversation.message_count - added;
    for (seq, message) in (first..).zip(messages) {
        add_message(conn, owner, id, seq, message).await?;
    }
    Ok(conversation)
}

/// Adds a message that nobody's turn brought to a conversation that is there. `false`: it is not, or not this user's.
pub async fn add(conn: &mut Conn, owner: UserId, id: &Id, message: &Message, now: Timestamp) -> Result<bool> {
    let sql = "UPDATE conversations SET updated_at = $3, message_count = message_count + 1 \
               WHERE owner = $1 AND id = $2 RETURNING message_count";
    let Some(row) = conn.first((sql, args![owner, id, now])).await? else { return Ok(false) };
    add_message(conn, owner, id, row.int(0)? - 1, message).await?;
    Ok(true)
}

pub async fn get(conn: &mut Conn, owner: UserId, id: &Id) -> Result<Conversation> {
    let sql = "SELECT id, title, created_at, updated_at, message_count FROM conversations WHERE owner = $1 AND id = $2";
    read(&conn.first((sql, args![owner, id])).await?.ok_or(Error::NotFound)?)
}

/// The last messages of a conversation, oldest first: none where nothing was said under this id yet. An id that is
/// another user's is [`Error::NotFound`]. Inside a transaction the next turn of this conversation waits for its end.
pub async fn open(conn: &mut Conn, owner: UserId, id: &Id, limit: i64) -> Result<Vec<Message>> {
    if conn.is_transaction_of_postgres() {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 1))";
        conn.first((lock, args![id])).await?;
    }
    let sql = "SELECT owner FROM conversations WHERE id = $1";
    let Some(row) = conn.first((sql, args![id])).await? else { return Ok(Vec::new()) };
    if row.text(0)? != owner.to_string() {
        return Err(Error::NotFound);
    }
    let sql = "SELECT seq, id, role, content, created_at, tool_calls, pending FROM messages \
               WHERE owner = $1 AND conversation_id = $2 ORDER BY seq DESC LIMIT $3";
    let rows = conn.all((sql, args![owner, id, limit])).await?;
    rows.iter().rev().map(|row| read_message(row).map(|(_, message)| message)).collect()
}

/// One page, the one used last first; `text` is looked for in titles and messages.
pub async fn list(
    conn: &mut Conn,
    owner: UserId,
    text: Option<&str>,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Conversation>> {
    let mut select = Statement::default();
    select.push("SELECT ").push(COLUMNS).push(" FROM conversations c WHERE owner = ").bind(owner);
    if let Some(text) = text {
        let pattern = containing(&text.to_lowercase());
        select
            .push(" AND (search LIKE ")
            .bind(pattern.clone())
            .push(" ESCAPE '\\' OR EXISTS (SELECT 1 FROM messages m ");
        select.push("WHERE m.owner = c.owner AND m.conversation_id = c.id AND m.search LIKE ").bind(pattern);
        select.push(" ESCAPE '\\'))");
    }
    if let Some(cursor) = after {
        select.push(" AND (updated_at, id) < (").bind(cursor.sort).push(", ").bind(cursor.id.as_str()).push(")");
    }
    select.push(" ORDER BY updated_at DESC, id DESC LIMIT ").bind(limit + 1);
    let rows = conn.all(select).await?;
    let conversations = rows.iter().map(read).collect::<Result<Vec<_>>>()?;
    Ok(Page::cut(conversations, limit, |c| Cursor { sort: c.updated_at.as_microsecond(), id: c.id.to_string() }))
}

/// One page of messages, oldest first.
pub async fn messages(
    conn: &mut Conn,
    owner: UserId,
    id: &Id,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<Message>> {
    let sql = "SELECT seq, id, role, content, created_at, tool_calls, pending FROM messages \
               WHERE owner = $1 AND conversation_id = $2 AND seq > $3 ORDER BY seq LIMIT $4";
    let from = after.map_or(-1, |cursor| cursor.sort);
    let rows = conn.all((sql, args![owner, id, from, limit + 1])).await?;
    let messages = rows.iter().map(read_message).collect::<Result<Vec<_>>>()?;
    let page = Page::cut(messages, limit, |(seq, message)| Cursor { sort: *seq, id: message.id.to_string() });
    Ok(Page { rows: page.rows.into_iter().map(|(_, message)| message).collect(), next: page.next })
}

pub async fn delete(conn: &mut Conn, owner: UserId, id: &Id) -> Result<()> {
    let sql = "DELETE FROM conversations WHERE owner = $1 AND id = $2";
    if conn.run((sql, args![owner, id])).await? == 0 {
        return Err(Error::NotFound);
    }
    let sql = "DELETE FROM messages WHERE owner = $1 AND conversation_id = $2";
    conn.run((sql, args![owner, id])).await.map(drop)
}

/// Adds a whole conversation with its times as they are, unless its id is taken, by whomever; says whether it did.
pub(crate) async fn add_if_new(
    conn: &mut Conn,
    owner: UserId,
    conversation: &Conversation,
    messages: &[Message],
) -> Result<bool> {
    let Conversation { id, title, created_at, updated_at, .. } = conversation;
    let count = i64::try_from(messages.len()).unwrap_or_default();
    let insert = "INSERT INTO conversations (id, owner, title, search, created_at, updated_at, message_count) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING";
    let values = args![id, owner, title.as_str(), title.to_lowercase(), *created_at, *updated_at, count];
    if conn.run((insert, values)).await? == 0 {
        return Ok(false);
    }
    for (seq, message) in (0..).zip(messages) {
        add_message(conn, owner, id, seq, message).await?;
    }
    Ok(true)
}

async fn add_message(conn: &mut Conn, owner: UserId, id: &Id, seq: i64, message: &Message) -> Result<()> {
    let json = |value: serde_json::Result<String>| value.map_err(|error| Error::Corrupt(error.to_string()));
    let tool_calls = json(serde_json::to_string(&message.tool_calls))?;
    let pending = message.pending.as_ref().map(serde_json::to_string).map(json).transpose()?;
    let insert = "INSERT INTO messages (owner, conversation_id, seq, id, role, content, search, tool_calls, pending, \
                  created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let values = args![
        owner,
        id,
        seq,
        message.id,
        message.role.as_str(),
        message.content.as_str(),
        message.content.to_lowercase(),
        tool_calls,
        pending,
        message.timestamp,
    ];
    conn.run((insert, values)).await.map(drop)
}

fn read(row: &Row) -> Result<Conversation> {
    Ok(Conversation {
        id: row.parsed(0, str::parse)?,
        title: row.text(1)?,
        created_at: row.time(2)?,
        updated_at: row.time(3)?,
        message_count: row.int(4)?,
    })
}

fn read_message(row: &Row) -> Result<(i64, Message)> {
    let pending = row.maybe_text(6)?.map(|json| serde_json::from_str(&json)).transpose();
    let message = Message {
        id: row.parsed(1, Uuid::try_parse)?,
        role: row.parsed(2, |word| Role::parse("role", word))?,
        content: row.text(3)?,
        timestamp: row.time(4)?,
        tool_calls: row.parsed(5, |json| serde_json::from_str(json))?,
        pending: pending.map_err(|error| Error::Corrupt(error.to_string()))?,
    };
    Ok((row.int(0)?, message))
}
